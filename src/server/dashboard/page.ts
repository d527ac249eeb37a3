/**
 * Serves the page at `/`. It runs with a Content-Security-Policy under which only its own files load, nothing inline
 * runs, and no text becomes code or markup (Trusted Types); no other page can frame it.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { errorAnswer } from "../../protocol/answers/answer.ts";
import { sendAnswer, sendText } from "../http/edge.ts";
import type { EdgeHandler } from "../http/http.ts";
import { type PageFile, PageFiles } from "./page-files.ts";

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

export function createPage(version: string, files = new PageFiles()): EdgeHandler {
  return ({ raw: request }, { raw: response }) => {
    const [path = "/"] = (request.url ?? "/").split("?", 1);
    const file = files.find(nameOf(path));
    if (file !== null) return sendFile(request, response, file);
    if (path === "/")
      return sendText(response, 200, "text/html; charset=utf-8", substitute(version, files.whyMissing()));
    sendAnswer(response, errorAnswer("not_found", "The page has no such file; load it again."));
  };
}

function nameOf(path: string): string {
  if (path === "/") return "index.html";
  return path === "/favicon.ico" ? "favicon.svg" : path.slice(1);
}

function sendFile(request: IncomingMessage, response: ServerResponse, file: PageFile): void {
  const { type, etag, isImmutable } = file;
  const headers = [
    ...["ETag", etag, "Vary", "Accept-Encoding"],
    // `/` names the files of one build, so a browser asks each time whether that is still the one.
    ...["Cache-Control", isImmutable ? "public, max-age=31536000, immutable" : "no-cache"],
    ...["X-Content-Type-Options", "nosniff", "X-Frame-Options", "DENY", "Referrer-Policy", "no-referrer"],
    ...["Cross-Origin-Opener-Policy", "same-origin", "Cross-Origin-Resource-Policy", "same-origin"],
    ...["Content-Security-Policy", policy],
  ];
  if (request.headers["if-none-match"] === etag) {
    response.writeHead(304, headers);
    response.end();
    return;
  }
  const [encoding, body] = encodedFor(request.headers["accept-encoding"], file);
  if (encoding !== null) headers.push("Content-Encoding", encoding);
  response.writeHead(200, [...headers, "Content-Type", type, "Content-Length", String(body.length)]);
  response.end(body);
}

/** `br;q=0` refuses it; anything else that names it takes it. */
function encodedFor(accepted: string | string[] | undefined, file: PageFile): readonly [string | null, Buffer] {
  const names = String(accepted ?? "")
    .split(",")
    .filter((part) => !/;\s*q=0(?:\.0*)?\s*$/.test(part))
    .map((part) => part.split(";", 1)[0]?.trim().toLowerCase());
  if (names.includes("br")) return ["br", file.brotli];
  if (names.includes("gzip")) return ["gzip", file.gzip];
  return [null, file.plain];
}

/** In place of a page that is not built. */
function substitute(version: string, reason: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Leasehold</title>
<h1>Leasehold ${version}</h1>
<p>The server runs. Its page is not there:</p>
<pre>${reason.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</pre>
<ul>
<li><a href="openapi.json">openapi.json</a>: all that can be asked of it</li>
<li><a href="metrics">metrics</a>: how it is doing</li>
<li><a href="readyz">readyz</a>: whether it serves</li>
</ul>
</html>
`;
}
