import assert from "node:assert/strict";
import { createHash, createHmac, randomBytes } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { decodeBase64url, encodeBase64url } from "./base64url.ts";
import { equalBytes, hmacKey, hmacSha256, hmacStep, sha256 } from "./sha256.ts";

const bytes = (lengthMax: number) => fc.uint8Array({ maxLength: lengthMax });

test("sums are those of the platform, at every length around a block's end", () => {
  for (let length = 0; length < 260; length++) {
    const message = randomBytes(length);
    assert.deepEqual(Buffer.from(sha256(message)), createHash("sha256").update(message).digest());
  }
});

test("HMACs are those of the platform, for keys of any length", () => {
  fc.assert(
    fc.property(bytes(200), bytes(300), (key, message) => {
      const expected = createHmac("sha256", key).update(message).digest();
      assert.deepEqual(Buffer.from(hmacSha256(hmacKey(key), message)), expected);
      if (key.length <= 64) assert.deepEqual(Buffer.from(hmacStep(key, message)), expected);
    }),
  );
});

test("two sums are equal only if every byte is", () => {
  fc.assert(
    fc.property(bytes(40), bytes(40), (a, b) => {
      assert.equal(equalBytes(a, b), Buffer.compare(a, b) === 0);
      assert.equal(equalBytes(a, a.slice()), true);
    }),
  );
});

test("base64url is the platform's, read back as it was", () => {
  fc.assert(
    fc.property(bytes(100), (given) => {
      const text = encodeBase64url(given);
      assert.equal(text, Buffer.from(given).toString("base64url"));
      assert.deepEqual(decodeBase64url(text), Uint8Array.from(given));
    }),
  );
});

test("bytes have one spelling in base64url: whatever else the platform would read is refused", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary-ascii", maxLength: 12 }), (text) => {
      const read = decodeBase64url(text);
      if (read !== null) assert.equal(encodeBase64url(read), text);
    }),
    { numRuns: 2_000 },
  );
  for (const text of ["QQ==", "QR", "Q", "Q Q", "Q+", "QQ\n", "é", "QQQQQ"]) assert.equal(decodeBase64url(text), null);
});
