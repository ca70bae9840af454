import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { AcceptedConnection } from '../../../../src/proxy/downstream/accepted-connection.ts';
import type { HalfCloseWatch } from '../../../../src/proxy/downstream/half-close-watch.ts';
import { Http1DownstreamConnection } from '../../../../src/proxy/downstream/http1/connection.ts';
import { systemNetwork } from '../../../../src/proxy/io/network.ts';
import { settle } from '../../../support/manual-clock.ts';
import { CHUNKED, chunk, get, ok, request } from '../../../wire/messages.ts';
import { createPorts, type Ports, Sink } from '../../transaction/ported-transaction.ts';

const [HEADER_MS, KEEP_ALIVE_MS, LINGER_MS] = [7000, 10_000, 1000];

/** An app that connects where there is no network. */
function connect(ports: Ports = {}) {
  const created = createPorts(ports);
  const sink = new Sink({ decodeStrings: false, highWaterMark: 64 * 1024, allowHalfOpen: true });
  const watched: { onLeft: () => void; ended: boolean }[] = [];
  const peers = {
    watch(_: Socket, onLeft: () => void) {
      const watch = { onLeft, ended: false };
      watched.push(watch);
      return () => {
        watch.ended = true;
      };
    },
  } as unknown as HalfCloseWatch;
  let freed = 0;
  let bytesRead = 0;
  Object.defineProperty(sink, 'bytesRead', { get: () => bytesRead });
  // What a socket does once its last byte has left.
  Object.assign(sink, {
    destroySoon: () => sink.end(() => sink.destroy()),
    resetAndDestroy: () => sink.destroy(),
  });
  const appContext = { ...created.context, network: systemNetwork, peers, http2Abuse: () => {} };
  const connection = new AcceptedConnection(sink as unknown as Socket, appContext, () => freed++);
  return {
    ...created,
    connection,
    appContext,
    sink,
    watched,
    freed: () => freed,
    /** The app sends this, and it is read. */
    async send(...pieces: string[]) {
      for (const piece of pieces) {
        bytesRead += piece.length;
        sink.push(Buffer.from(piece, 'latin1'));
        await settle();
      }
    },
    /** The app says that it will send no more. */
    async end() {
      sink.push(null);
      await settle();
    },
  };
}

describe('a new HTTP/1.1 connection', () => {
  it('without a byte is closed after the header timeout, without an answer', async () => {
    const { clock, sink } = connect();
    await clock.advance(HEADER_MS - 1);
    expect(sink.destroyed).toBe(false);
    await clock.advance(1);
    expect([sink.destroyed, sink.text]).toEqual([true, '']);
  });

  it('with half a head gets 400 after the header timeout and is closed after the linger time', async () => {
    const { clock, sink, send, metric } = connect();
    await send('GET / HTTP/1.1\r\n');
    await clock.advance(HEADER_MS);
    expect(sink.text).toMatch(/^HTTP\/1\.1 400 /);
    expect(sink.text).toContain(`did not arrive within ${HEADER_MS} ms`);
    expect(sink.writableEnded).toBe(true);
    expect(await metric('errors_total{route="none",error="bad_request"}')).toBe(1);
    await clock.advance(LINGER_MS - 1);
    expect(sink.destroyed).toBe(false);
    await clock.advance(1);
    expect(sink.destroyed).toBe(true);
  });
});

describe('an HTTP/1.1 request', () => {
  it('may take as long as its route allows', async () => {
    const { clock, connection, sink, send, upstream } = connect({
      route: { timeouts: { responseMs: 600_000 } },
    });
    await send(get('/'));
    expect(connection.busy).toBe(true);
    await clock.advance(500_000);
    expect(sink.destroyed).toBe(false);
    upstream().bring(ok('fine'));
    expect(sink.text).toContain('fine');
  });

  it('leaves the connection open for the next one until the keep-alive timeout', async () => {
    const { clock, connection, sink, send, upstream, metric } = connect();
    await send(get('/1'));
    upstream().bring(ok('one'));
    expect(connection.busy).toBe(false);
    expect(await metric('requests_total{route="api",method="GET",code="200"}')).toBe(1);
    await clock.advance(KEEP_ALIVE_MS - 1);
    await send(get('/2'));
    upstream(1).bring(ok('two'));
    expect(sink.text.endsWith('two')).toBe(true);
    await clock.advance(KEEP_ALIVE_MS);
    expect(sink.writableEnded).toBe(true);
    await settle();
    expect(sink.destroyed).toBe(true);
  });

  it('has the header timeout of the next head run from its first byte', async () => {
    const { clock, sink, send, upstream } = connect();
    await send(get('/1'));
    upstream().bring(ok('one'));
    await clock.advance(KEEP_ALIVE_MS - 1);
    await send('G');
    await clock.advance(HEADER_MS - 1);
    await send('ET');
    expect(sink.text).not.toContain('400');
    await clock.advance(1);
    expect(sink.text).toContain('HTTP/1.1 400 ');
  });

  it('with Connection: close may be followed by more bytes, which are read for the linger time', async () => {
    const { clock, sink, send, upstream } = connect();
    await send(`${get('/', 'Connection: close')}\r\n`);
    upstream().bring(ok('one'));
    expect(sink.writableEnded).toBe(true);
    expect(sink.destroyed).toBe(false);
    await clock.advance(LINGER_MS);
    expect(sink.destroyed).toBe(true);
  });
});

describe('an answer that the app does not read', () => {
  it('holds the next request back until it has been sent', async () => {
    const { sink, send, upstream, asked } = connect();
    sink.cork();
    await send(get('/1') + get('/2'));
    upstream().bring(ok('one'));
    await settle();
    expect(asked).toHaveLength(1);
    sink.uncork();
    await settle();
    expect(asked).toHaveLength(2);
    upstream(1).bring(ok('two'));
    expect(sink.text).toContain('two');
  });

  it('is cut after the idle timeout', async () => {
    const { clock, sink, send, upstream } = connect({ route: { timeouts: { idleMs: 3000 } } });
    sink.cork();
    await send(get('/1'));
    upstream().bring(ok('one'));
    await clock.advance(2999);
    expect(sink.destroyed).toBe(false);
    await clock.advance(1);
    expect(sink.destroyed).toBe(true);
  });
});

describe('pipelined requests', () => {
  it('are read at most 16 KiB ahead', async () => {
    const { sink, send, upstream } = connect();
    const next = get('/2', `x: ${'y'.repeat(9000)}`);
    await send(get('/1'), next);
    expect(sink.isPaused()).toBe(false);
    await send(next);
    expect(sink.isPaused()).toBe(true);
    upstream().bring(ok('one'));
    upstream(1).bring(ok('two'));
    expect(sink.isPaused()).toBe(false);
    upstream(2).bring(ok('three'));
    expect(sink.text).toContain('three');
  });

  it('are read no further when more than that comes at once', async () => {
    const { sink, send } = connect();
    await send(get('/1') + get('/2', `x: ${'y'.repeat(9000)}`).repeat(2));
    expect(sink.isPaused()).toBe(true);
  });
});

describe('the rest of a request that has already been answered', () => {
  const early = async () => {
    const connected = connect();
    await connected.send(request('POST', '/', [CHUNKED]) + chunk('some'));
    connected.upstream().bring(ok('early'));
    return connected;
  };

  it('is waited for at most a second', async () => {
    const { clock, sink, send } = await early();
    await send(chunk('more'));
    await clock.advance(LINGER_MS - 1);
    expect(sink.writableEnded).toBe(false);
    await clock.advance(1);
    expect(sink.writableEnded).toBe(true);
    expect(sink.destroyed).toBe(false);
    await clock.advance(LINGER_MS);
    expect(sink.destroyed).toBe(true);
  });

  it('that is malformed closes the connection without a second answer', async () => {
    const { sink, send, asked } = await early();
    const before = sink.text;
    await send(get('/smuggled'));
    expect([sink.writableEnded, sink.text, asked.length]).toEqual([true, before, 1]);
  });
});

it('an HTTP/1.1 app that half-closes amid its request is cut, and its upstream too', async () => {
  const { sink, send, end, upstream } = connect();
  await send(`${request('POST', '/', ['Content-Length: 5'])}he`);
  await end();
  expect([sink.destroyed, upstream().connection.socket.destroyed]).toEqual([true, true]);
});

describe('flow control towards an HTTP/1.1 app', () => {
  it('continues only for the transaction that paused it', async () => {
    const { sink, connection: carrier, appContext } = connect();
    const connection = new Http1DownstreamConnection(carrier, appContext, () => {});
    connection.pause();
    connection.resume({} as Parameters<Http1DownstreamConnection['resume']>[0]);
    expect(sink.isPaused()).toBe(true);
  });
});

describe('while the proxy drains', () => {
  it('the end of a request is reported, and its connection closes', async () => {
    const { load, sink, send, upstream, freed } = connect();
    await send(get('/'));
    load.phase = 'finishing';
    const before = freed();
    upstream().bring(ok('one'));
    expect(freed()).toBeGreaterThan(before);
    expect(sink.text).toContain('connection: close\r\n');
    expect(sink.writableEnded).toBe(true);
  });

  it('an incomplete request is reported as free too', async () => {
    const { send, freed } = connect({ phase: 'finishing' });
    await send('GET / HT');
    expect(freed()).toBe(1);
  });

  it('nothing is reported before the drain begins', async () => {
    const { send, upstream, freed } = connect();
    await send(get('/'));
    upstream().bring(ok('one'));
    await send('GET');
    expect(freed()).toBe(0);
  });
});
