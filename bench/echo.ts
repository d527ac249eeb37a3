/** The cost of HTTP alone: the same framework parses the same bodies and returns them. */
import fastify from "fastify";

const server = fastify();
server.get("/readyz", (_request, reply) => reply.send("{}"));
server.post("/v1/acquire", (request, reply) =>
  reply.header("content-type", "application/json").send(JSON.stringify(request.body)),
);
await server.listen({ port: Number(process.argv[2]), host: "127.0.0.1" });
process.on("SIGTERM", () => process.exit(0));
