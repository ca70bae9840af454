/**
 * While tokens, keys and nonces change, every request that arrives has one proof, which is its own, for its token, and new.
 * `REQUESTS=100000` sends more of them than CI does.
 */

import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer,
  Agent as Http1Agent,
  request as http1Request,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { type ClientHttp2Session, connect, createServer as createH2c, createSecureServer } from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import { setTimeout as passes } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { type Certificate, createCertificateAuthority } from '../../support/certificate-authority.ts';
import { ProofJudge } from '../../support/proof-judge.ts';
import { temporaryFile } from '../../wire/temporary-file.ts';
import { runSidecar } from '../support/sidecar.ts';

const REQUESTS = Number(process.env['REQUESTS'] ?? 10_000);
const AT_ONCE = 64;
/** Some tokens are replaced for their key's sake, some for their age. After five changes, the sidecar follows one in 5 s. */
const KEY_LIVES_MS = [400, 1900, 400, 1900];
const FURTHER_KEY_LIVES_MS = 5200;
const TOKEN_LIVES_S = 2;
const REQUESTS_OF_A_NONCE = 50;

const METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'PATCH', 'OPTIONS', 'PROPFIND', 'M-SEARCH'];
/** Dot segments are refused. */
const PATHS = fc.sample(
  fc
    .stringMatching(/^(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2}){0,40}(?:\?[a-z/?%=]{0,9})?$/)
    .filter((path) => !/(?:^|\/|%2f|%5c)(?:\.|%2e)/i.test(path)),
  1000,
);
const ROUTES = ['/http1', '/h2c', '/tls'];

interface Answer {
  readonly status: number;
  readonly fields: Readonly<Record<string, string>>;
}

/** What all servers know. */
class World {
  readonly judge = new ProofJudge();
  /** The key of each token. */
  readonly bound = new Map<string, string>();
  readonly faults: string[] = [];
  repeats = 0;

  grant(raw: readonly string[], uri: string, nonces: Nonces): Answer & { readonly body: object } {
    const { thumbprint, nonce } = this.judge.judge({ method: 'POST', uri, raw });
    const fields = { 'content-type': 'application/json', 'dpop-nonce': nonces.last };
    if (!nonces.takes(nonce)) return { status: 400, fields, body: { error: 'use_dpop_nonce' } };
    const token = randomUUID();
    this.bound.set(token, thumbprint);
    const body = { access_token: token, token_type: 'DPoP', expires_in: TOKEN_LIVES_S };
    return { status: 200, fields, body };
  }

  serve(method: string, uri: string, raw: readonly string[], nonces: Nonces): Answer {
    try {
      const { thumbprint, nonce, token = '' } = this.judge.judge({ method, uri, raw });
      if (this.bound.get(token) !== thumbprint) throw new Error('the token is of another key');
      if (nonces.takes(nonce)) return { status: 200, fields: {} };
      this.repeats += 1;
      const challenge = 'DPoP error="use_dpop_nonce"';
      return { status: 401, fields: { 'dpop-nonce': nonces.last, 'www-authenticate': challenge } };
    } catch (error) {
      this.faults.push(`${method} ${uri}: ${error}`);
      return { status: 500, fields: {} };
    }
  }
}

/** Of one server: the last two are good. */
class Nonces {
  #left = 0;
  #before = '';
  last = randomUUID();

  takes(nonce: string | undefined): boolean {
    this.#left = (this.#left + 1) % REQUESTS_OF_A_NONCE;
    if (this.#left === 0) [this.#before, this.last] = [this.last, randomUUID()];
    return nonce === this.last || nonce === this.#before;
  }
}

async function portOf(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

async function startProvider(world: World): Promise<string> {
  const nonces = new Nonces();
  const server = createServer((request, response) => {
    request.resume();
    const { status, fields, body } = world.grant(request.rawHeaders, url, nonces);
    response.writeHead(status, fields).end(JSON.stringify(body));
  });
  const url = `http://127.0.0.1:${await portOf(server)}/token`;
  return url;
}

async function startApi(world: World, kind: 'http1' | 'h2c' | Certificate): Promise<string> {
  const nonces = new Nonces();
  const scheme = typeof kind === 'object' ? 'https' : 'http';
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const { method = '', url = '', rawHeaders, headers } = request;
    request.resume();
    const uri = `${scheme}://${headers[':authority'] ?? headers.host}${url.replace(/\?.*/, '')}`;
    const { status, fields } = world.serve(method, uri, rawHeaders, nonces);
    response.writeHead(status, fields).end();
  };
  const server =
    kind === 'http1' ? createServer(listener) : kind === 'h2c' ? createH2c() : createSecureServer(kind);
  if (kind !== 'http1') server.on('request', listener);
  return `${scheme}://127.0.0.1:${await portOf(server)}`;
}

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

function nth(number: number): Asked {
  const method = METHODS[number % METHODS.length] as string;
  const path = `${ROUTES[number % ROUTES.length]}/${PATHS[(number * 7) % PATHS.length]}`;
  const own = number % 5 === 0 ? { dpop: 'own', authorization: 'DPoP own' } : {};
  const isWithBody = method === 'POST' || method === 'PUT' || method === 'PATCH';
  return { method, path, fields: own, body: isWithBody ? 'x'.repeat(number % 999) : undefined };
}

async function byHttp1(
  agent: Http1Agent,
  port: number,
  { method, path, fields, body }: Asked,
): Promise<number> {
  const request = http1Request({ agent, host: '127.0.0.1', port, method, path, headers: fields });
  request.end(body);
  const [response] = await once(request, 'response');
  response.resume();
  await once(response, 'end');
  return response.statusCode;
}

async function byHttp2(session: ClientHttp2Session, { method, path, fields, body }: Asked): Promise<number> {
  const stream = session.request(
    { ':method': method, ':path': path, ...fields },
    { endStream: body === undefined },
  );
  if (body !== undefined) stream.end(body);
  const [headers] = await once(stream, 'response');
  stream.resume();
  await once(stream, 'close');
  return headers[':status'];
}

function newFiles() {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return { client_id: 'shop', client_secret: 'secret', key };
}

it(`${REQUESTS} mixed requests`, { timeout: 600_000 }, async () => {
  const world = new World();
  const authority = createCertificateAuthority('test');
  const caFile = await temporaryFile('ca.pem', authority.cert);
  const upstreams = [
    `${await startApi(world, 'http1')}/base`,
    await startApi(world, 'h2c'),
    await startApi(world, authority.issue('api', '127.0.0.1')),
  ];
  const sidecar = await runSidecar({
    credential: { tokenUrl: await startProvider(world), proofOfPossession: 'dpop', dpop: { keyFile: 'key' } },
    files: newFiles(),
    upstream: { url: '' },
    settings: {
      routes: upstreams.map((upstream, at) => ({
        name: `r${at}`,
        match: { pathPrefix: ROUTES[at] },
        stripPrefix: at === 0,
        upstream,
        protocol: ['http1', 'h2c', 'auto'][at],
        ...(at === 2 ? { tls: { caFile } } : {}),
      })),
    },
  });
  const port = Number(sidecar.address.split(':')[1]);
  const agent = new Http1Agent({ keepAlive: true });
  const session = connect(`http://${sidecar.address}`);
  onTestFinished(() => {
    agent.destroy();
    session.destroy();
  });

  const statuses = new Map<number, number>();
  let sent = 0;
  const goesOn = (): boolean => sent < REQUESTS || new Set(world.bound.values()).size <= 2;
  async function app(): Promise<void> {
    while (goesOn()) {
      const asked = nth(sent++);
      const status = sent % 2 === 0 ? await byHttp1(agent, port, asked) : await byHttp2(session, asked);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  }
  const over = new AbortController();
  async function changeKeys(): Promise<void> {
    for (let change = 0; goesOn(); change++) {
      await passes(KEY_LIVES_MS[change] ?? FURTHER_KEY_LIVES_MS, undefined, over);
      await sidecar.remount(newFiles());
    }
  }
  const changes = changeKeys().catch((error: unknown) => {
    if (!over.signal.aborted) throw error;
  });
  await Promise.all(Array.from({ length: AT_ONCE }, app));
  over.abort();
  await changes;

  const { judge, bound, faults, repeats } = world;
  const keys = new Set(bound.values());
  expect(faults).toEqual([]);
  expect(statuses).toEqual(new Map([[200, sent]]));
  expect(judge.judged).toBeGreaterThan(REQUESTS);
  expect(keys.size).toBeGreaterThan(2);
  expect(bound.size).toBeGreaterThan(keys.size);
  expect(repeats).toBeGreaterThan(10);
});
