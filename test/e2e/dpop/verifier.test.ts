/** Over each protocol, oauth4webapi takes token and proof for the URL that the API sees. */

import { once } from 'node:events';
import { request as http1Request } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { connect as connectTls } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { createCertificateAuthority } from '../../support/certificate-authority.ts';
import { temporaryFile } from '../../wire/temporary-file.ts';
import { API, startProvider } from '../oidc-provider/provider.ts';
import { startProvingUpstream } from '../support/proving-upstream.ts';
import { runSidecar } from '../support/sidecar.ts';

type Ask = (sidecar: string, host: string) => Promise<unknown>;

const TARGET = "/a%2Fb//c;d=1/~e'?f=/g";

const byHttp1: Ask = async (sidecar) => {
  const [host, port] = sidecar.split(':');
  const [response] = await once(http1Request({ host, port, path: TARGET, agent: false }).end(), 'response');
  response.resume();
};

const byWebSocket: Ask = async (sidecar) => {
  const [host, port] = sidecar.split(':');
  const headers = { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
  const request = http1Request({ host, port, path: TARGET, headers }).end();
  const [, socket] = await once(request, 'upgrade');
  socket.destroy();
};

const byGrpc: Ask = async (sidecar) => {
  const session = connectHttp2(`http://${sidecar}`);
  onTestFinished(() => session.destroy());
  const fields = { te: 'trailers', 'content-type': 'application/grpc' };
  const call = session.request({ ':method': 'POST', ':path': '/shop.Orders/Place', ...fields });
  await once(call.end(Buffer.alloc(5)), 'response');
};

const intercepted: Ask = async (sidecar, api) => {
  const [host, port] = sidecar.split(':');
  const tunnel = http1Request({ host, port, method: 'CONNECT', path: api }).end();
  const [, socket] = await once(tunnel, 'connect');
  const secured = connectTls({ socket, servername: 'localhost', rejectUnauthorized: false });
  secured.write(`GET ${TARGET} HTTP/1.1\r\nHost: ${api.toUpperCase()}\r\n\r\n`);
  await once(secured, 'data');
  secured.destroy();
};

it.each<[string, Ask, 'h2c' | 'tls' | undefined, string]>([
  ['HTTP/1.1', byHttp1, undefined, 'http1'],
  ['HTTP/1.1 over TLS', byHttp1, 'tls', 'http1'],
  ['HTTP/2 over TLS', byHttp1, 'tls', 'auto'],
  ['HTTP/2 in clear text', byHttp1, 'h2c', 'h2c'],
  ['gRPC in clear text', byGrpc, 'h2c', 'h2c'],
  ['gRPC over TLS', byGrpc, 'tls', 'auto'],
  ['WebSocket', byWebSocket, undefined, 'http1'],
  ['WebSocket over TLS', byWebSocket, 'tls', 'http1'],
  ['intercepted TLS', intercepted, 'tls', 'auto'],
])('%s', async (_, ask, kind, protocol) => {
  const client = { client_id: 'shop', client_secret: 'secret', dpop_bound_access_tokens: true };
  const provider = await startProvider({ clients: [client], tokenLifetimeSeconds: 60 });
  const authority = createCertificateAuthority('test');
  const upstream = await startProvingUpstream({
    issuer: provider.issuer,
    jwksUri: `${provider.issuer}/jwks`,
    audience: API,
    ...(kind && { serves: kind === 'h2c' ? kind : authority.issue('api', '127.0.0.1', 'localhost') }),
  });
  const { port } = new URL(upstream.url);
  const caFile = await temporaryFile('ca.pem', authority.cert);
  const tls = kind === 'tls' ? { tls: { caFile } } : {};
  const sidecar = await runSidecar({
    credential: { tokenUrl: provider.tokenUrl, proofOfPossession: 'dpop' },
    files: { client_id: 'shop', client_secret: 'secret' },
    upstream,
    route: { protocol, ...tls },
    settings: {
      forwardProxy: { connect: 'intercept', allow: [{ host: 'localhost', port: Number(port), ...tls }] },
      interception: { directory: caFile.replace('ca.pem', 'trust') },
    },
  });
  await ask(sidecar.address, `localhost:${port}`);
  expect(upstream.verdicts).toEqual([{ claims: expect.objectContaining({ client_id: 'shop' }) }]);
});
