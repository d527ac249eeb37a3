/** The master keys, as an operator sees and rotates them. */
import type { TokenTold } from "../../protocol/answers/queries.ts";
import type { Service } from "../service.ts";
import type { TokenOffice } from "./tokens.ts";

export function tokenKeys({ keys }: TokenOffice): TokenTold {
  return { type: "token_keys", keys: keys.list() };
}

/** On the disk before it is used or answered; cells that are connected are given theirs at once. */
export function rotateTokenKeys({ tokens, cells, engine, log }: Service): TokenTold {
  const keyId = tokens.keys.rotate(engine.now());
  cells.pushKeys();
  log.info({ keyId }, "tokens are made with a new key from now on");
  return tokenKeys(tokens);
}
