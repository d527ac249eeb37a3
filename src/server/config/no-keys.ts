/** S5: elsewhere than on loopback nobody is let in without a key, so there must be one. */
export class NoKeys extends Error {
  constructor(host: string) {
    super(`${host} is not loopback, and there are no keys yet: make one with \`keys create --role operator\``);
    this.name = "NoKeys";
  }
}
