/** Calls a method of a gRPC service over TLS and prints the reply, which the server makes of the request: `grpc-call.js HOST PATH TEXT`. */

import { Client, credentials } from '@grpc/grpc-js';

const [host, path, text] = process.argv.slice(2);
const client = new Client(host, credentials.createSsl());
client.makeUnaryRequest(path, Buffer.from, String, text, (error, reply) => {
  if (error) throw error;
  process.stdout.write(reply);
  client.close();
});
