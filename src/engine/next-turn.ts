/** Something to be done in the next turn of the loop, once, however often it is asked for until then. */
export class NextTurn {
  private readonly run: () => void;
  private isSet = false;

  constructor(run: () => void) {
    this.run = run;
  }

  set(): void {
    if (this.isSet) return;
    this.isSet = true;
    setImmediate(() => {
      this.isSet = false;
      this.run();
    });
  }
}
