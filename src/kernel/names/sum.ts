/** Two 32-bit FNV-1a sums over a text that is given in pieces, one at a time. */
class Sum {
  private a = 0;
  private b = 0;

  begin(): void {
    this.a = 0x811c9dc5 | 0;
    this.b = 0x9747b28c | 0;
  }

  add(text: string): void {
    let { a, b } = this;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      a = Math.imul(a ^ code, 0x01000193);
      b = Math.imul(b ^ code, 0x85ebca6b) ^ (b >>> 13);
    }
    this.a = a;
    this.b = b;
  }

  /**
   * Of most fields nothing is said, so only what is given is summed; a field that is added later changes no sum. A text stands
   * behind its length, so that no other fields have the same text.
   */
  field(name: string, value: unknown): void {
    if (value === null || value === undefined) return;
    this.add(name);
    if (typeof value === "string") {
      this.add(String(value.length));
      this.add(":");
      this.add(value);
    } else this.add(JSON.stringify(value) ?? "null");
    this.add(";");
  }

  end(separator: string): string {
    return `${(this.a >>> 0).toString(36)}${separator}${(this.b >>> 0).toString(36)}`;
  }
}

/** One for all, because a fingerprint is summed in one go. */
export const sum = new Sum();
