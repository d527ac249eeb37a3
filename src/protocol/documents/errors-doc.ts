/** docs/errors.md, from the list of codes. `node src/protocol/documents/errors-doc.ts > docs/errors.md` writes it again. */
import { errorCodes, errors } from "../answers/errors.ts";

export function errorsDocument(): string {
  const rows = errorCodes.map((code) => {
    const { statuses, retryable, whatToDo } = errors[code];
    return `| \`${code}\` | ${statuses.join(", ")} | ${retryable ? "yes" : "no"} | ${whatToDo} |`;
  });
  return `${preamble}\n| code | statuses | retryable | what to do |\n| --- | --- | --- | --- |\n${rows.join("\n")}\n`;
}

const preamble = `# Errors

Every error is \`{"error": "<code>", "detail": "<sentence>", …}\`. The code is stable; the detail says what is wrong and
what to do. If one field is at fault, \`field\` names it as a dotted path (\`intents.0.resource\`). If waiting helps,
\`retry_after_ms\` is when to ask again at the earliest, and the header \`Retry-After\` is the same in seconds, rounded up. After
DIE it grows with each attempt and does not say when the holder will be done. "Retryable" means that the same request can
succeed later without being changed.

This page is generated from \`src/protocol/answers/errors.ts\` by \`src/protocol/documents/errors-doc.ts\`; a test checks that
the two agree.
`;

if (import.meta.main) process.stdout.write(errorsDocument());
