import type { IncomingMessage } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { DPOP_ALGORITHMS } from '../issuer/dpop-proof.ts';
import { formatAddress, type ListenAddress } from '../platform/net/address.ts';
import { closeAtOnce, listenOn } from '../platform/net/listen.ts';
import { http } from '../platform/net/node-http.ts';
import type { Clock } from '../platform/time/clock.ts';
import { type ProofCheck, thumbprintIn } from './bound-tokens.ts';

interface CallingApp {
  summary(): string;
  stop(): Promise<void>;
}

const INTERVAL_MS = 200;

/**
 * Calls five times a second, without a token.
 * @param onRefused called when answers become 401, and when they are 200 again.
 */
export function keepCalling(url: string, clock: Clock, onRefused: (refused: boolean) => void): CallingApp {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  let calls = 0;
  let failures = 0;
  let stopped = false;
  let refused = false;
  let cancel: () => void = () => undefined;

  function call(): void {
    const request = http.get(url, { agent }, (response) => {
      response.resume();
      response.once('end', () => {
        finish(response.statusCode === 200);
        watch(response.statusCode);
      });
    });
    request.once('error', () => finish(false));
  }

  function finish(succeeded: boolean): void {
    if (stopped) return;
    calls += 1;
    if (!succeeded) failures += 1;
    cancel = clock.after(INTERVAL_MS, call);
  }

  function watch(status: number | undefined): void {
    if (stopped || status !== (refused ? 200 : 401)) return;
    refused = !refused;
    onRefused(refused);
  }

  call();
  return {
    summary: () => `the app: ${calls === 1 ? '1 request' : `${calls} requests`}, ${failures} failed`,
    async stop() {
      stopped = true;
      cancel();
      agent.destroy();
    },
  };
}

interface ProtectedApi {
  readonly address: ListenAddress;
  close(): Promise<void>;
}

interface ProtectedApiOptions {
  readonly listen: ListenAddress;
  readonly keys: JWTVerifyGetKey;
  readonly issuer: string;
  readonly audience: string;
  /** While it returns true, no token is accepted. */
  readonly refuses?: () => boolean;
  /** With it, only bound tokens are accepted, each with a proof. */
  readonly checkProof?: ProofCheck;
}

interface Answer {
  readonly status: 200 | 401;
  readonly body: unknown;
  /** RFC 6750 §3.1 and RFC 9449 §7.1. */
  readonly error?: 'invalid_token' | 'invalid_dpop_proof';
}

/** Verifies each request's token, and tells callers who they are. */
export async function startProtectedApi(options: ProtectedApiOptions): Promise<ProtectedApi> {
  const server = http.createServer(async (request, response) => {
    request.resume();
    const { status, body, error } = await answer(request, options, () => address);
    response.writeHead(status, {
      'Content-Type': 'application/json',
      ...(status === 401 ? { 'WWW-Authenticate': challenge(options, error) } : {}),
    });
    response.end(`${JSON.stringify(body, null, 2)}\n`);
  });
  const address = await listenOn(server, options.listen, 'protected API');
  return {
    address,
    close: () => closeAtOnce(server),
  };
}

/** RFC 6750 §3; RFC 9449 §7.1 */
function challenge({ checkProof }: ProtectedApiOptions, error: Answer['error']): string {
  if (checkProof === undefined) return 'Bearer realm="demo"';
  const why = error === undefined ? '' : `, error="${error}"`;
  return `DPoP realm="demo", algs="${DPOP_ALGORITHMS.join(' ')}"${why}`;
}

async function answer(
  request: IncomingMessage,
  options: ProtectedApiOptions,
  address: () => ListenAddress,
): Promise<Answer> {
  const { issuer, audience, keys, checkProof } = options;
  const [, scheme = '', token = ''] =
    /^(Bearer|DPoP) ([^ ]+)$/i.exec(request.headers.authorization ?? '') ?? [];
  const takes = checkProof === undefined ? 'bearer' : 'dpop';
  if (scheme.toLowerCase() !== takes) {
    const kind = takes === 'bearer' ? 'bearer' : 'DPoP';
    return { status: 401, body: { error: `no ${kind} token came with the request` } };
  }
  if (options.refuses?.() === true) {
    return { status: 401, body: { error: 'every token is refused at present' }, error: 'invalid_token' };
  }
  try {
    const { payload } = await jwtVerify(token, keys, { issuer, audience, requiredClaims: ['exp', 'jti'] });
    const fault = await checkProof?.({
      method: request.method,
      // Not by its field Host, which whoever relays a proof may choose.
      url: new URL(`http://${formatAddress(address())}`).origin + (request.url ?? '').replace(/\?.*$/s, ''),
      token,
      claims: payload,
      proof: String(request.headers['dpop'] ?? ''),
    });
    if (fault !== undefined) {
      const body = { error: 'invalid DPoP proof', reason: fault };
      return { status: 401, body, error: 'invalid_dpop_proof' };
    }
    const caller = describeCaller(payload);
    return { status: 200, body: { method: request.method, path: request.url, caller } };
  } catch (error) {
    const code = error instanceof errors.JOSEError ? error.code : 'unknown';
    return { status: 401, body: { error: 'invalid token', code }, error: 'invalid_token' };
  }
}

function describeCaller(claims: JWTPayload): unknown {
  return {
    client: claims['azp'],
    scope: claims['scope'],
    audience: claims.aud,
    tokenId: claims.jti,
    tokenEndsInSeconds: claims.exp === undefined ? undefined : claims.exp - Math.floor(Date.now() / 1000),
    tokenIsBoundTo: thumbprintIn(claims),
  };
}

interface ProviderLine {
  /** Constant while the line is cut. */
  readonly address: ListenAddress;
  leadTo(provider: ListenAddress): void;
  /** New ones are refused. */
  cut(): Promise<void>;
  /** @throws {SidecarError} `configuration` if the address has been taken. */
  mend(): Promise<void>;
  delay(delayMs: number): void;
}

/** @throws {SidecarError} `configuration` if the address cannot be listened on. */
export async function openProviderLine(listen: ListenAddress, clock: Clock): Promise<ProviderLine> {
  const sockets = new Set<Socket>();
  let provider: ListenAddress | undefined;
  let delayMs = 0;

  const server = createServer((caller) => {
    if (provider === undefined) {
      caller.destroy();
      return;
    }
    const callee = connect(provider);
    for (const socket of [caller, callee]) {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    }
    caller.on('error', () => undefined);
    caller.once('close', () => callee.destroy());
    callee.on('error', () => caller.destroy());
    callee.once('close', () => caller.end());
    caller.pipe(callee);
    callee.on('data', (bytes) => {
      callee.pause();
      clock.after(delayMs, () => {
        if (!caller.destroyed) caller.write(bytes);
        callee.resume();
      });
    });
  });
  const address = await listenOn(server, listen, '--issuer-listen');

  return {
    address,
    leadTo(next) {
      provider = next;
    },
    cut: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
    async mend() {
      await listenOn(server, address, '--issuer-listen');
    },
    delay(nextMs) {
      delayMs = nextMs;
    },
  };
}
