import type { IncomingMessage } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import type { ListenAddress } from '../platform/net/address.ts';
import { closeAtOnce, listenOn } from '../platform/net/listen.ts';
import { http } from '../platform/net/node-http.ts';
import type { Clock } from '../platform/time/clock.ts';

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
}

/** Verifies each request's token, and tells callers who they are. */
export async function startProtectedApi(options: ProtectedApiOptions): Promise<ProtectedApi> {
  const server = http.createServer(async (request, response) => {
    request.resume();
    const [status, body] = await answer(request, options);
    response.writeHead(status, {
      'Content-Type': 'application/json',
      // RFC 6750 §3
      ...(status === 401 ? { 'WWW-Authenticate': 'Bearer realm="demo"' } : {}),
    });
    response.end(`${JSON.stringify(body, null, 2)}\n`);
  });
  const address = await listenOn(server, options.listen, 'protected API');
  return {
    address,
    close: () => closeAtOnce(server),
  };
}

async function answer(request: IncomingMessage, options: ProtectedApiOptions): Promise<[number, unknown]> {
  const token = /^Bearer ([^ ]+)$/i.exec(request.headers.authorization ?? '')?.[1];
  if (token === undefined) return [401, { error: 'no bearer token came with the request' }];
  if (options.refuses?.() === true) return [401, { error: 'every token is refused at present' }];
  try {
    const { issuer, audience, keys } = options;
    const { payload } = await jwtVerify(token, keys, { issuer, audience, requiredClaims: ['exp', 'jti'] });
    return [200, { method: request.method, path: request.url, caller: describeCaller(payload) }];
  } catch (error) {
    return [
      401,
      { error: 'invalid token', code: error instanceof errors.JOSEError ? error.code : 'unknown' },
    ];
  }
}

function describeCaller(claims: JWTPayload): unknown {
  return {
    client: claims['azp'],
    scope: claims['scope'],
    audience: claims.aud,
    tokenId: claims.jti,
    tokenEndsInSeconds: claims.exp === undefined ? undefined : claims.exp - Math.floor(Date.now() / 1000),
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
