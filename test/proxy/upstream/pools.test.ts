import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttp2, createSecureServer, type Http2SecureServer } from 'node:http2';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo, Server, Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { UpstreamProtocol } from '../../../src/config/config.ts';
import type { ProxyErrorCode, SidecarError } from '../../../src/platform/errors.ts';
import { Registry } from '../../../src/platform/prometheus.ts';
import { type Clock, systemClock } from '../../../src/platform/time/clock.ts';
import { systemNetwork } from '../../../src/proxy/io/network.ts';
import {
  type Delivery,
  type IncomingRequest,
  type ResponseHead,
  type UpstreamStream,
  type UpstreamUser,
  WithoutRequest,
} from '../../../src/proxy/streams/contract.ts';
import { OpenUpstreams } from '../../../src/proxy/upstream/connection-budget.ts';
import { UpstreamPools } from '../../../src/proxy/upstream/pools.ts';
import { captureLog } from '../../support/log-capture.ts';
import { testProxyMetrics } from '../../support/proxy-metrics.ts';
import { ShiftedClock } from '../../support/shifted-clock.ts';
import { until } from '../../support/until.ts';
import { selfSigned } from '../../wire/certificate.ts';
import { routeTo } from '../../wire/sidecar.ts';
import { temporaryFile } from '../../wire/temporary-file.ts';

const CERTIFICATE = selfSigned('127.0.0.1');
const TRUST = Number.POSITIVE_INFINITY;

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly by: 'http1' | 'h2';
}

/** Sends one request as soon as it may, and settles with what becomes of it. */
class User implements UpstreamUser {
  readonly #request: IncomingRequest;
  readonly #body: string;
  readonly #clock: Clock;
  readonly #result = Promise.withResolvers<Answer>();
  #stream: UpstreamStream | undefined;
  #status = 0;
  #text = '';
  delivery: Delivery | undefined;
  readonly caller: string | undefined;

  constructor(request: IncomingRequest, body: string, clock: Clock = systemClock, caller?: string) {
    this.caller = caller;
    this.#clock = clock;
    this.#request = request;
    this.#body = body;
  }

  get answer(): Promise<Answer> {
    return this.#result.promise;
  }

  begin(stream: UpstreamStream): void {
    this.#stream = stream;
    if (stream.ready) this.onConnected();
  }

  onConnected(instead?: UpstreamStream): void {
    if (instead !== undefined) this.#stream = instead;
    const stream = this.#stream as UpstreamStream;
    const hasBody = this.#body !== '';
    stream.send(
      {
        from: this.#request,
        target: this.#request.target,
        authority: 'up.test',
        authorization: 'Bearer t',
        keepClientAuthorization: false,
        instanceId: 'me',
        upgrade: undefined,
        hasBody,
      },
      this.#clock.monotonicMs(),
    );
    if (hasBody) {
      stream.data(Buffer.from(this.#body));
      stream.end(['x-last', '1'], this.#clock.monotonicMs());
    }
    stream.flush();
  }
  onResponse(head: ResponseHead): void {
    this.#status = head.status;
  }
  onData(slice: Buffer): void {
    this.#text += slice.toString('latin1');
  }
  onEnd(): void {
    const by = this.#stream?.protocol as 'http1' | 'h2';
    this.#result.resolve({ status: this.#status, body: this.#text, by });
  }
  onError(error: SidecarError<ProxyErrorCode>, delivery: Delivery): void {
    this.delivery = delivery;
    this.#result.reject(error);
  }
  onInterim(): void {}
  onSwitched(): void {}
  onReadEnd(): void {}
  onDrain(): void {}
  onStalled(): void {}
}

/** Sends nothing. */
class TunnelUser extends User {
  override onConnected(): void {}
}

function request(protocol: 'http1' | 'h2', more: Partial<IncomingRequest> = {}): IncomingRequest {
  return {
    protocol,
    method: 'GET',
    target: '/',
    targetForm: 'origin',
    host: 'app.test',
    fields: [],
    contentLength: undefined,
    connectionOptions: [],
    ...more,
  };
}

/** Says which version of HTTP a request came by, its body, its cookies, and its trailers. */
function tell(came: IncomingMessage, answer: ServerResponse): void {
  let body = '';
  came.on('data', (piece) => {
    body += piece;
  });
  came.on('end', () => {
    const { cookie = '-', host = '-' } = came.headers;
    const version = `HTTP/${came.httpVersionMajor}`;
    answer.end(`${version} ${cookie} ${host} ${body} ${came.trailers['x-last'] ?? '-'}`);
  });
}

type Kind = 'h2 and http/1.1' | 'http/1.1' | 'h2' | 'plain http/1.1' | 'plain h2';

const PATIENCE = { connectMs: 3_600_000, responseMs: 3_600_000, idleMs: 3_600_000 };

interface Opening {
  /** Connections of all pools. */
  readonly most?: number;
  /** By ALPN, where it is not what `kind` says. */
  readonly choose?: (offered: { protocols: string[] }) => string | undefined;
  /** Whether connections of HTTP/1.1 stand for as long as nobody closes them. */
  readonly keeps?: boolean;
  /** Of an upstream of plain HTTP/2. */
  readonly settings?: { readonly maxConcurrentStreams: number };
  /** In place of `tell`, with time to spare. */
  readonly answering?: (came: IncomingMessage, answer: ServerResponse) => void;
}

async function open(
  kind: Kind,
  protocol: UpstreamProtocol = 'auto',
  { most = 100, choose, keeps = false, settings, answering = tell }: Opening = {},
) {
  const { cert, key } = CERTIFICATE;
  const server: Server =
    kind === 'http/1.1'
      ? createHttps({ cert, key }, tell)
      : kind === 'plain http/1.1'
        ? createHttp(tell)
        : kind === 'plain h2'
          ? createHttp2(settings === undefined ? {} : { settings }, answering as never)
          : createSecureServer(
              {
                cert,
                key,
                allowHTTP1: kind === 'h2 and http/1.1',
                ...(choose === undefined ? {} : { ALPNCallback: choose }),
              },
              tell as never,
            );
  // It says for how long it keeps connections unless it keeps them as long as it is let.
  if (keeps && 'keepAliveTimeout' in server) server.keepAliveTimeout = 0;
  const accepted = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket: Socket) => {
    connections++;
    accepted.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => accepted.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
  const clock = new ShiftedClock();
  const { log } = captureLog();
  const all = new OpenUpstreams(most);
  const plain = kind.startsWith('plain');
  const caFile = await temporaryFile('ca.crt', cert);
  const route = routeTo(
    { address, protocol: plain ? 'http' : 'https', caFile: plain ? undefined : caFile },
    // Time is moved by minutes.
    { protocol, timeouts: answering === tell ? {} : PATIENCE },
  );
  const pools = new UpstreamPools(route, {
    clock,
    log,
    network: systemNetwork,
    all,
    observer: testProxyMetrics(new Registry()).forRoute('api'),
    random: () => 0,
  });
  onTestFinished(async () => {
    pools.close();
    for (const socket of accepted) socket.destroy();
    (server as Http2SecureServer).close();
    await once(server, 'close');
  });
  function start(of: IncomingRequest, body = '', caller?: string): User {
    const user = new User(of, body, clock, caller);
    user.begin(pools.acquire(of, user, TRUST));
    return user;
  }
  return {
    pools,
    caFile,
    clock,
    all,
    start,
    connections: () => connections,
    accepted,
    ask: (of: IncomingRequest, body = '') => start(of, body).answer,
  };
}

describe('protocol: auto over TLS', () => {
  it('sends an HTTP/1.1 request by HTTP/1.1 on separate connections', async () => {
    const { ask, connections } = await open('h2 and http/1.1');
    expect(await ask(request('http1'))).toMatchObject({ by: 'http1' });
    await ask(request('h2'));
    expect(await ask(request('http1'))).toMatchObject({ by: 'http1' });
    await ask(request('h2'));
    expect(connections()).toBe(2);
  });

  it('returns to HTTP/1.1 once the upstream chooses it', async () => {
    let speaks = ['h2'];
    const { ask, start, pools } = await open('h2 and http/1.1', 'auto', {
      choose: ({ protocols }) => protocols.find((protocol) => speaks.includes(protocol)),
    });
    await expect(start(request('http1')).answer).rejects.toThrow('takes no HTTP/1.1');
    expect(await ask(request('http1'))).toMatchObject({ by: 'h2' });

    speaks = ['http/1.1'];
    pools.discardIdle(new WithoutRequest());

    // The first asks by ALPN, the others need not.
    for (let times = 0; times < 3; times++) {
      expect(await ask(request('http1'))).toMatchObject({ by: 'http1' });
    }
    expect(pools.negotiatedProtocol).toBe('http1');
  });

  it('translates an HTTP/2 request completely if the upstream chooses HTTP/1.1', async () => {
    const { pools, ask, connections } = await open('http/1.1');
    const fields = ['cookie', 'a=1', 'x-a', 'b', 'cookie', 'b=2', 'te', 'trailers'];

    const answer = await ask(request('h2', { method: 'POST', fields }), 'body');

    expect(answer).toEqual({ by: 'http1', status: 200, body: 'HTTP/1 a=1; b=2 up.test body 1' });
    expect(pools.negotiatedProtocol).toBe('http1');
    await ask(request('h2'));
    await ask(request('http1'));
    expect(connections()).toBe(1);
  });

  it('keeps trailers announced beside a Content-Length', async () => {
    const { ask } = await open('http/1.1');
    const fields = ['content-length', '4', 'trailer', 'x-last'];

    const answer = await ask(request('h2', { method: 'POST', fields, contentLength: 4 }), 'body');

    expect(answer.body).toBe('HTTP/1 - up.test body 1');
  });

  it('makes one connection to find out, and then as many as are needed', async () => {
    const { ask, connections } = await open('h2');
    await Promise.all(Array.from({ length: 20 }, () => ask(request('h2'))));
    expect(connections()).toBe(1);
    const other = await open('http/1.1');
    await Promise.all(Array.from({ length: 5 }, () => other.ask(request('h2'))));
    expect(other.connections()).toBe(5);
  });

  it('fails gRPC if the upstream chooses HTTP/1.1, and asks again only after a while', async () => {
    const { clock, ask, connections, pools } = await open('http/1.1');
    const grpc = request('h2', { method: 'POST', fields: ['content-type', 'application/grpc+proto'] });
    const failure = {
      code: 'upstream_protocol_error',
      message: expect.stringContaining('HTTP/2 is to be switched on there'),
    };

    await expect(ask(grpc, 'x')).rejects.toMatchObject(failure);
    expect(() => pools.acquire(grpc, new User(grpc, ''), TRUST)).toThrow('HTTP/2 is to be switched on there');
    expect(connections()).toBe(1);
    clock.advance(61_000);
    await expect(ask(grpc, 'x')).rejects.toMatchObject(failure);
    expect(connections()).toBe(2);
    // What was made to find out is not lost.
    expect(await ask(request('h2'))).toMatchObject({ by: 'http1' });
    expect(connections()).toBe(2);
  });
});

describe('gRPC is never sent by HTTP/1.1', () => {
  const grpc = request('h2', { method: 'POST', fields: ['content-type', 'application/grpc+proto'] });

  it('although an HTTP/1.1 connection is idle and the upstream’s choice is old', async () => {
    const { clock, ask } = await open('http/1.1', 'auto', { keeps: true });
    await ask(request('h2'));
    clock.advance(40_000);
    await ask(request('h2'));
    clock.advance(30_000);

    await expect(ask(grpc, 'x')).rejects.toMatchObject({ code: 'upstream_protocol_error' });
  });

  it('and uses an open HTTP/2 connection whatever the upstream chose last', async () => {
    let chosen = 'h2';
    const { pools, ask, connections } = await open('h2 and http/1.1', 'auto', { choose: () => chosen });
    expect(await ask(grpc, 'x')).toMatchObject({ by: 'h2' });
    chosen = 'http/1.1';
    const other = new User(request('h2'), '');
    other.begin(pools.acquireFresh(request('h2'), other));
    expect(await other.answer).toMatchObject({ by: 'http1' });

    expect(await ask(grpc, 'x')).toMatchObject({ by: 'h2' });
    expect(connections()).toBe(2);
  });
});

describe('protocol: auto without TLS', () => {
  it('means HTTP/1.1, and gRPC fails with the setting to change', async () => {
    const { ask, pools, connections } = await open('plain http/1.1');
    expect(pools.negotiatedProtocol).toBe('http1');
    expect(await ask(request('h2'))).toMatchObject({ by: 'http1' });
    const grpc = request('h2', { method: 'POST', fields: ['content-type', 'application/grpc'] });
    expect(() => pools.acquire(grpc, new User(grpc, ''), TRUST)).toThrow('protocol: h2c');
    expect(() => pools.acquireFresh(grpc, new User(grpc, ''))).toThrow('protocol: h2c');
    const web = request('h2', { fields: ['content-type', 'application/grpc-web+proto'] });
    expect(await ask(web)).toMatchObject({ by: 'http1' });
    expect(connections()).toBe(1);
  });

  it('counts HTTP/2 requests’ connections towards the common limit', async () => {
    const { pools, start } = await open('plain http/1.1', 'auto', { most: 2 });
    const users = [start(request('h2')), start(request('h2'))];
    const third = request('h2');
    expect(() => pools.acquire(third, new User(third, ''), TRUST)).toThrow(
      '2 connections to upstreams are open',
    );
    await Promise.all(users.map(({ answer }) => answer));
  });

  it('counts tunnels towards the common limit, and idle connections make room', async () => {
    const { pools, ask, accepted } = await open('plain http/1.1', 'auto', { most: 2, keeps: true });
    await ask(request('http1'));
    const [idle] = accepted;
    const closed = once(idle as Socket, 'close');
    const tunnel = () => pools.acquireTunnel(new TunnelUser(request('h2', { method: 'CONNECT' }), ''));
    const [first] = [tunnel(), tunnel()];
    await closed;
    expect(tunnel).toThrow(
      expect.objectContaining({ code: 'overloaded', message: '2 connections to upstreams are open' }),
    );
    first?.cancel();
    tunnel();
  });
});

describe('HTTP/1.1 requests', () => {
  it('count their connections towards the common limit', async () => {
    const { pools, all, start } = await open('plain http/1.1', 'auto', { most: 2 });
    const users = [start(request('h2')), start(request('http1'))];
    const third = request('http1');
    const overloaded = expect.objectContaining({ code: 'overloaded' });
    expect(() => pools.acquire(third, new User(third, ''), TRUST)).toThrow(overloaded);
    expect(() => pools.acquireFresh(third, new User(third, ''))).toThrow(overloaded);
    await Promise.all(users.map(({ answer }) => answer));
    expect(all.mayOpen()).toBe(true);
    await start(third).answer;
  });
});

describe('a configured protocol', () => {
  it.each([
    ['h2', 'h2', 'h2'],
    ['h2c', 'plain h2', 'h2'],
    ['http1', 'h2 and http/1.1', 'http1'],
  ] as const)('is used for requests of both versions: %s', async (protocol, kind, by) => {
    const { ask, connections } = await open(kind, protocol);
    expect(await ask(request('http1'))).toMatchObject({ by });
    expect(await ask(request('h2'))).toMatchObject({ by });
    expect(connections()).toBe(1);
  });
});

describe('the HTTP/2 connections of an upstream', () => {
  it('are replaced when too old, even if one is never idle', async () => {
    const answers: ServerResponse[] = [];
    const answering = (_: IncomingMessage, answer: ServerResponse) => answers.push(answer);
    const settings = { maxConcurrentStreams: 1 };
    const { clock, start, connections } = await open('plain h2', 'h2c', { most: 1, settings, answering });
    const first = start(request('h2'));
    await until(() => answers.length === 1);
    answers[0]?.end('SETTINGS have been read with this');
    await first.answer;
    const users = [first, start(request('h2'))];
    for (let minute = 1; minute < 7; minute++) {
      await until(() => answers.length === minute + 1);
      // There always is one that waits.
      users.push(start(request('h2')));
      clock.advance(60_000);
      answers[minute]?.end('x');
      await users[minute]?.answer;
    }
    expect(connections()).toBe(2);
    for (const { answer } of users) answer.catch(() => {});
  });

  it('are separate for callers of a gateway, one for each caller', async () => {
    const { start, connections } = await open('plain h2', 'h2c');
    for (const caller of ['a', 'b', 'a', undefined, 'b']) {
      expect(await start(request('h2'), '', caller).answer).toMatchObject({ by: 'h2' });
    }
    expect(connections()).toBe(3);
  });

  it('are closed on request only if idle', async () => {
    const { pools, ask, accepted } = await open('plain h2', 'h2c');
    await ask(request('h2'));
    pools.discardIdle(new WithoutRequest());
    await Promise.all([...accepted].map((socket) => once(socket, 'close')));
    expect(await ask(request('h2'))).toMatchObject({ by: 'h2' });
  });

  it.each(['h2c', 'auto'] as const)(
    'are not kept for a late caller after the pool was retired, with protocol: %s',
    async (protocol) => {
      const { pools, start, accepted } = await open(protocol === 'h2c' ? 'plain h2' : 'h2', protocol);
      pools.drain();
      expect(await start(request('h2'), '', 'late').answer).toMatchObject({ by: 'h2' });
      await until(() => accepted.size === 0);
    },
  );

  it('serve waiting requests after the pool was retired and are then closed', async () => {
    const { pools, start, accepted } = await open('plain h2', 'h2c');
    const user = start(request('h2'));
    pools.drain();
    expect(await user.answer).toMatchObject({ by: 'h2' });
    await Promise.all([...accepted].map((socket) => once(socket, 'close')));
  });

  it('are closed when requests waited in vain in a retired pool', async () => {
    const { pools, start, clock, accepted } = await open('plain h2', 'h2c', {
      settings: { maxConcurrentStreams: 0 },
    });
    // The upstream is asked before it has said that it takes nothing.
    await expect(start(request('h2')).answer).rejects.toMatchObject({ code: 'upstream_protocol_error' });
    const late = start(request('h2'));
    pools.drain();
    expect(accepted.size).toBe(1);
    const closed = Promise.all([...accepted].map((socket) => once(socket, 'close')));

    clock.advance(routeTo({ address: { host: '', port: 0 } }).timeouts.connectMs);

    await expect(late.answer).rejects.toMatchObject({ code: 'upstream_timeout' });
    await closed;
  }, 10_000);

  it('made with other trusted certificates end after their requests', async () => {
    const { ask, caFile, clock, connections, accepted } = await open('h2', 'h2');
    await ask(request('h2'));
    const [socket] = accepted;
    const closed = once(socket as Socket, 'close');

    await writeFile(caFile, `${CERTIFICATE.cert}${selfSigned('127.0.0.1').cert}`);
    // Files are looked at every ten seconds.
    clock.advance(10_001);

    await closed;
    expect(await ask(request('h2'))).toMatchObject({ by: 'h2' });
    expect(connections()).toBe(2);
  });

  it('accept a limited number of waiting requests', async () => {
    const { pools } = await open('plain h2', 'h2c');
    const waiting = Array.from({ length: 1024 }, () => {
      const of = request('h2');
      return pools.acquire(of, new User(of, ''), TRUST);
    });
    const of = request('h2');
    expect(() => pools.acquire(of, new User(of, ''), TRUST)).toThrow('1024 requests wait');
    for (const stream of waiting) stream.cancel();
    const user = new User(of, '');
    user.begin(pools.acquire(of, user, TRUST));
    expect(await user.answer).toMatchObject({ by: 'h2' });
  });
});
