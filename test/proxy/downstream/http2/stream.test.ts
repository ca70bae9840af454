import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import {
  type ConnectionStream,
  Http2DownstreamStream,
} from '../../../../src/proxy/downstream/http2/stream.ts';
import { ErrorCode } from '../../../../src/proxy/http2/errors.ts';
import type { ServerStream } from '../../../../src/proxy/http2/server-connection.ts';
import { CoalescingWriter } from '../../../../src/proxy/io/coalescing-writer.ts';
import type { TakeBytes } from '../../../../src/proxy/io/sockets.ts';
import { UpstreamReset } from '../../../../src/proxy/streams/contract.ts';
import { settle } from '../../../support/manual-clock.ts';
import { FakeBearer, FIRST } from '../../../wire/fake-bearer.ts';
import { CHUNKED, chunk, message, ok } from '../../../wire/messages.ts';
import { createPorts, type Ports, Sink } from '../../transaction/ported-transaction.ts';
import { fakeOutlet } from './fake-outlet.ts';

const IDLE_MS = 9_000;
const SPARE = { timeouts: { connectMs: 1e9, responseMs: 1e9, idleMs: IDLE_MS } };

interface Asked extends Ports {
  readonly method?: string;
  readonly fields?: string[];
  readonly endStream?: boolean;
}

/** A request on a stream, served as far as it came. */
function begin({ method = 'POST', fields = [], endStream = false, ...ports }: Asked = {}) {
  const created = createPorts({ route: SPARE, ...ports });
  const { allowed, outlet, sent, waiting, written } = fakeOutlet();
  const carrier = { outlet, released: () => void written.push('released') };
  const request = {
    protocol: 'h2',
    method,
    target: '/',
    targetForm: 'origin',
    host: 'app.test',
    fields,
    connectionOptions: [],
    contentLength: undefined,
  } as const;
  const stream = new Http2DownstreamStream(
    carrier,
    created.context,
    {} as ServerStream<ConnectionStream>,
    request,
    endStream,
  );
  if (method !== 'CONNECT') stream.transaction.begin();
  stream.afterRead();
  return {
    ...created,
    allowed,
    sent,
    stream,
    waiting,
    /** One read of the connection brings so much of the body. */
    read(text: string, end = false) {
      stream.takeData(Buffer.from(text), end);
      stream.afterRead();
    },
    upstreamGot: () => created.upstream().sent.replace(/^.*?\r\n\r\n/s, ''),
    counted: (code: number) =>
      created.metric(`requests_total{route="api",method="${method}",code="${code}"}`),
  };
}

describe('a body', () => {
  it('goes upstream as it comes, and is given back when it has been taken', () => {
    const { read, sent, stream, upstreamGot } = begin();
    expect([stream.requestComplete, stream.inputEnded]).toEqual([false, false]);
    stream.takeData(Buffer.from('one'), false);
    expect(sent()).toEqual([]);
    stream.afterRead();
    expect(sent()).toEqual(['gives 3 back']);
    read('');
    expect(sent()).toEqual([]);
    expect([stream.requestComplete, stream.inputEnded]).toEqual([false, false]);
    read('four', true);
    expect([stream.requestComplete, stream.inputEnded]).toEqual([true, true]);
    expect(sent()).toEqual(['gives 4 back']);
    expect(upstreamGot()).toBe(`${chunk('one')}${chunk('four')}0\r\n\r\n`);
  });

  it('ends with its trailers, of which those pass that may', () => {
    const { read, stream, upstreamGot } = begin({ fields: ['te', 'trailers'] });
    read('one');
    stream.takeTrailers(['x-sum', '7', 'authorization', 'Bearer smuggled']);
    stream.afterRead();
    expect([stream.requestComplete, stream.inputEnded]).toEqual([true, true]);
    expect(upstreamGot()).toBe(`${chunk('one')}0\r\nx-sum: 7\r\n\r\n`);
  });

  it('waits while there is no token, and as much of the window with it', async () => {
    const token = Promise.withResolvers<string>();
    const bearer = new FakeBearer({ held: undefined, obtain: () => token.promise });
    const { read, sent, stream, upstreamGot } = begin({ bearer });
    read('one');
    read('two', true);
    expect([stream.inputEnded, stream.requestComplete]).toEqual([true, false]);
    expect(sent()).toEqual([]);
    token.resolve(FIRST);
    await settle();
    expect(stream.requestComplete).toBe(true);
    expect(upstreamGot()).toBe(`${chunk('one')}${chunk('two')}0\r\n\r\n`);
    expect(sent()).toEqual(['gives 6 back']);
  });

  it('that was passed on stays counted while the upstream is behind', () => {
    const { read, sent, stream } = begin();
    stream.takeData(Buffer.from('one'), false);
    stream.pause();
    stream.afterRead();
    read('four');
    expect(sent()).toEqual([]);
    stream.resume();
    expect(sent()).toEqual(['gives 7 back']);
  });

  it('that nobody had wait is given back after its read, and not before', () => {
    const { sent, stream } = begin();
    stream.takeData(Buffer.from('one'), false);
    stream.resume();
    expect(sent()).toEqual([]);
  });

  it('ends once', () => {
    const { read, stream, upstreamGot } = begin();
    read('one', true);
    stream.pause();
    stream.resume();
    expect(upstreamGot()).toBe(`${chunk('one')}0\r\n\r\n`);
  });

  it('comes in its order where some of it waits', () => {
    const { read, stream, upstreamGot } = begin();
    stream.pause();
    read('one ');
    stream.resume();
    read('two', true);
    expect(upstreamGot()).toBe(`${chunk('one ')}${chunk('two')}0\r\n\r\n`);
  });

  it('of a request that is over is given back at once, and goes nowhere', () => {
    const { read, sent, stream } = begin({ route: { match: { pathPrefix: '/api' } } });
    sent();
    stream.pause();
    stream.takeData(Buffer.from('late'), false);
    expect([stream.transaction.over, sent()]).toEqual([true, ['gives 4 back']]);
    read('later', true);
    expect([stream.inputEnded, sent()]).toEqual([true, ['gives 5 back']]);
  });

  it('that waits is given back when the request ends', () => {
    const { read, sent, stream } = begin();
    stream.takeData(Buffer.from('one'), false);
    stream.pause();
    read('four');
    stream.leave();
    expect(sent()).toEqual(['reset CANCEL', 'gives 7 back', 'released']);
    stream.resume();
    expect(sent()).toEqual([]);
    stream.gone(true);
    expect(sent()).toEqual(['released']);
  });
});

describe('100-continue', () => {
  it.each<[string, Asked, boolean]>([
    ['where it is asked for', { fields: ['expect', '100-Continue'] }, true],
    [
      'where it is asked for beside something else',
      { fields: ['expect', 'x', 'expect', '100-continue'] },
      true,
    ],
    ['where something else is', { fields: ['expect', 'x'] }, false],
    ['of a request without it', {}, false],
    ['of a request without a body', { fields: ['expect', '100-continue'], endStream: true }, false],
  ])('is waited for %s: %s %s', (_, asked, awaits) => {
    expect(begin(asked).stream.awaitsContinue).toBe(awaits);
  });

  it('is passed on once, to who waits for it, and other informational answers always', () => {
    const { sent, stream, upstream } = begin({ fields: ['expect', '100-continue'] });
    upstream().bring('HTTP/1.1 100 Continue\r\n\r\n');
    upstream().bring('HTTP/1.1 100 Continue\r\n\r\n');
    expect(sent()).toEqual(['fields :status,100']);
    expect(stream.awaitsContinue).toBe(false);
    upstream().bring('HTTP/1.1 103 Early\r\nLink: x\r\n\r\n');
    expect(sent()).toEqual(['fields :status,103,link,x']);
    const unasking = begin();
    unasking.upstream().bring('HTTP/1.1 100 Continue\r\n\r\n');
    expect(unasking.sent()).toEqual([]);
  });
});

describe('an answer', () => {
  it('of an upstream leaves whole, and was of use', async () => {
    const { clock, counted, load, sent, stream, upstream } = begin({ method: 'GET', endStream: true });
    upstream().bring(ok('fine'));
    expect(sent()).toEqual([
      'fields :status,200,content-length,4',
      'data fine last',
      'useful',
      `leaves in ${IDLE_MS} ms`,
      'released',
    ]);
    await clock.advance(5);
    expect([load.inFlight, await counted(200)]).toEqual([1, 0]);
    stream.left();
    expect([load.inFlight, await counted(200)]).toEqual([0, 1]);
  });

  it('to a request that is not at its end says that the rest is not wanted', () => {
    const { read, sent, upstream } = begin();
    read('some');
    sent();
    upstream().bring(ok('no'));
    expect(sent().slice(-3)).toEqual(['reset NO_ERROR', `leaves in ${IDLE_MS} ms`, 'released']);
  });

  it('of the sidecar’s own has cost nothing, and to HEAD has no body', () => {
    const refused = { endStream: true, route: { ...SPARE, match: { pathPrefix: '/api' } } };
    const [head] = begin({ ...refused, method: 'HEAD' }).sent();
    expect(head).toMatch(/^fields :status,404,.* last$/);
    const [, body, ...after] = begin({ ...refused, method: 'GET' }).sent();
    expect(body).toMatch(/^data \{.*"code":"route_not_found"\} last$/);
    expect(after).toEqual(['leaves in 7000 ms', 'released']);
  });

  it.each([
    ['205', 'GET', message('HTTP/1.1 205 Reset', [CHUNKED], `${chunk('x')}0\r\n\r\n`)],
    ['to HEAD', 'HEAD', message('HTTP/1.1 200 OK', ['X: y'])],
  ])('%s has no body, whatever the upstream sends', (_, method, bytes) => {
    const { sent, upstream } = begin({ method, endStream: true });
    upstream().bring(bytes);
    const [head, next] = sent();
    expect(head).toMatch(/ last$/);
    expect(next).toBe('useful');
  });

  it('that has none has no body, whoever brings one', () => {
    const { sent, stream } = begin({ method: 'GET', endStream: true });
    stream.respond({ status: 200, reason: '', fields: [], connectionOptions: [] }, 'none');
    stream.data(Buffer.from('x'));
    stream.end([], IDLE_MS);
    expect(sent()[0]).toBe('fields :status,200 last');
  });

  it('ends with its trailers', () => {
    const { sent, upstream } = begin({ method: 'GET', endStream: true });
    upstream().bring(message('HTTP/1.1 200 OK', [CHUNKED], `${chunk('x')}0\r\nX-Sum: 7\r\n\r\n`));
    expect(sent().slice(0, 3)).toEqual([
      'fields :status,200',
      'data x',
      'fields x-sum,7 never indexed x-sum,7 last',
    ]);
  });

  it('that the app makes no room for has the upstream wait, and goes on when there is', () => {
    const { allowed, sent, stream, upstream, waiting } = begin({ method: 'GET', endStream: true });
    allowed.window = 3;
    upstream().bring(message('HTTP/1.1 200 OK', ['Content-Length: 8'], 'four'));
    expect(sent()).toEqual(['fields :status,200,content-length,8', 'data fou']);
    expect([waiting.size, upstream().sink.isPaused()]).toEqual([1, true]);
    allowed.window = 1;
    stream.mayGoOn();
    expect(sent()).toEqual(['data r']);
    expect([waiting.size, upstream().sink.isPaused()]).toEqual([0, false]);
  });

  it('that the app does not take in time is reset', async () => {
    const { allowed, clock, counted, sent, upstream } = begin({ method: 'GET', endStream: true });
    allowed.window = 0;
    upstream().bring(ok('fine'));
    sent();
    await clock.advance(IDLE_MS - 1);
    expect(sent()).toEqual([]);
    await clock.advance(1);
    expect(sent()).toEqual(['reset CANCEL', 'released']);
    expect(await counted(200)).toBe(1);
  });
});

describe('an answer that is cut', () => {
  it.each([
    ['by the end of the upstream’s connection', undefined, 'INTERNAL_ERROR'],
    ['by a reset that means the same to the app', ErrorCode.CANCEL, 'CANCEL'],
    ['by one that asks for calm', ErrorCode.ENHANCE_YOUR_CALM, 'ENHANCE_YOUR_CALM'],
    ['by one that speaks of the upstream’s connection', ErrorCode.PROTOCOL_ERROR, 'INTERNAL_ERROR'],
  ])('%s is sent as far as it came, and reset', (_, code, told) => {
    const { sent, stream, upstream } = begin({ method: 'GET', endStream: true });
    upstream().bring(message('HTTP/1.1 200 OK', ['Content-Length: 9']));
    stream.data(Buffer.from('some'));
    if (code === undefined) upstream().connection.socket.emit('end');
    else stream.transaction.fail(new UpstreamReset('the upstream has reset it', code));
    expect(sent()).toEqual(['fields :status,200,content-length,9', 'data some', `reset ${told}`, 'released']);
    stream.data(Buffer.from('more'));
    expect([stream.flush(), sent()]).toEqual([true, []]);
  });
});

describe('an app that', () => {
  it('has gone is counted as 499, and its upstream is let go', async () => {
    const { counted, load, sent, stream, upstream } = begin();
    stream.gone(true);
    expect(sent()).toEqual(['released']);
    expect([upstream().connection.socket.destroyed, load.inFlight, await counted(499)]).toEqual([true, 0, 1]);
  });

  it('has gone amid its answer is sent no more of it', async () => {
    const { allowed, clock, sent, stream, upstream, waiting } = begin({ method: 'GET', endStream: true });
    allowed.window = 0;
    upstream().bring(ok('fine'));
    stream.gone(false);
    sent();
    expect(waiting.size).toBe(0);
    allowed.window = 9;
    stream.mayGoOn();
    await clock.advance(IDLE_MS);
    expect(sent()).toEqual([]);
  });

  it('will say no more of a request that is not whole has it reset', async () => {
    const { counted, sent, stream } = begin();
    stream.leave();
    expect(sent()).toEqual(['reset CANCEL', 'released']);
    expect(await counted(499)).toBe(1);
  });
});

/** A CONNECT that was answered, and the connection that it leads to. */
function tunnelling({ endStream = false } = {}) {
  const served = begin({ method: 'CONNECT', endStream });
  const { read, sent, stream } = served;
  expect([stream.requestComplete, stream.awaitsContinue]).toEqual([true, false]);
  read('early ', endStream);
  const sink = new Sink({ decodeStrings: false, allowHalfOpen: true, autoDestroy: false });
  const endings: string[] = [];
  Object.assign(sink, {
    resetAndDestroy: () => void endings.push('reset'),
    destroySoon: () => void endings.push('soon'),
    destroy: () => void endings.push('at once'),
  });
  let bring: TakeBytes = () => {};
  const socket = sink as unknown as Socket;
  const end = {
    socket,
    writer: new CoalescingWriter(socket),
    takeOver(take: TakeBytes) {
      bring = take;
      return undefined;
    },
  };
  expect(sent()).toEqual([]);
  stream.becomeTunnel(undefined, end, IDLE_MS, undefined);
  expect(sent()).toEqual(['fields :status,200', 'gives 6 back']);
  return { ...served, sink, endings, say: (text: string) => bring(Buffer.from(text)) };
}

describe('a tunnel', () => {
  it('passes what came before it stood, and all that comes, both ways', () => {
    const { read, say, sent, sink } = tunnelling();
    read('more');
    expect(sink.text).toBe('early more');
    expect(sent()).toEqual(['gives 4 back']);
    say('back');
    expect(sent()).toEqual(['data back']);
  });

  it('whose app ended its side before it stood has ended the other’s', () => {
    expect(tunnelling({ endStream: true }).sink.writableEnded).toBe(true);
  });

  it('ends each direction by itself, and was of use when both have ended', async () => {
    const { read, sent, sink, endings } = tunnelling();
    read('', true);
    expect(sink.writableEnded).toBe(true);
    expect(sent()).toEqual([]);
    sink.push(null);
    await settle();
    expect(sent()).toEqual(['data  last', 'useful', `leaves in ${IDLE_MS} ms`, 'released']);
    expect(endings).toEqual(['soon']);
  });

  it('whose upstream ends first ends with the app’s end', () => {
    const { read, sent, sink } = tunnelling();
    sink.emit('end');
    expect(sent()).toEqual(['data  last']);
    read('bye', true);
    expect(sink.text).toBe('early bye');
    expect(sent()).toEqual(['useful', `leaves in ${IDLE_MS} ms`, 'gives 3 back', 'released']);
  });

  it('that the app makes no room in has the upstream wait, and goes on when there is', () => {
    const { allowed, say, sent, sink, stream } = tunnelling();
    allowed.window = 3;
    say('four');
    expect([sent(), sink.isPaused()]).toEqual([['data fou'], true]);
    allowed.window = 1;
    stream.mayGoOn();
    expect([sent(), sink.isPaused()]).toEqual([['data r'], false]);
  });

  it('that the upstream is slow in has the app wait, whose window is not given back', () => {
    const { read, sent, sink } = tunnelling();
    sink.stuck = true;
    read('x'.repeat(100_000));
    read('more');
    expect(sent()).toEqual([]);
    sink.unblock();
    sink.emit('drain');
    expect(sent()).toEqual(['gives 100004 back']);
    expect(sink.text.length).toBe('early '.length + 100_004);
  });

  it('whose end the app makes no room for is cut on both sides in time', async () => {
    const { allowed, clock, endings, read, say, sent, sink } = tunnelling();
    allowed.window = 0;
    say('last');
    sink.emit('end');
    await clock.advance(IDLE_MS - 1);
    // It is not idle: the app says more, and takes nothing.
    read('still here');
    expect(sent()).toEqual(['gives 10 back']);
    await clock.advance(1);
    expect(sent()).toEqual(['reset CANCEL', 'released']);
    expect(endings).toEqual(['at once']);
  });

  it('whose upstream has ended and closed is over, and the rest of what the app says not wanted', () => {
    const { sent, sink } = tunnelling();
    sink.push(null);
    sink.emit('end');
    expect(sent()).toEqual(['data  last']);
    Object.defineProperty(sink, 'readableEnded', { value: true });
    sink.emit('close');
    expect(sent()).toEqual(['reset NO_ERROR', `leaves in ${IDLE_MS} ms`, 'released']);
  });

  it('whose upstream has closed before all has been sent is over when it is', () => {
    const { allowed, say, sent, sink, stream } = tunnelling();
    allowed.window = 0;
    say('last');
    sink.emit('end');
    Object.defineProperty(sink, 'readableEnded', { value: true });
    sink.emit('close');
    expect(sent()).toEqual([]);
    allowed.window = 4;
    stream.mayGoOn();
    expect(sent()).toEqual(['data last last', 'reset NO_ERROR', `leaves in ${IDLE_MS} ms`, 'released']);
  });

  it.each([
    ['reset', true, 'reset'],
    ['left', false, 'at once'],
  ])('that the app has %s is ended for the upstream alike', (_, byReset, how) => {
    const { endings, sent, stream } = tunnelling();
    stream.gone(byReset);
    expect([endings, sent()]).toEqual([[how], ['released']]);
  });

  it('whose app will say no more before its end is reset, and closed upstream', () => {
    const { endings, sent, stream } = tunnelling();
    stream.leave();
    expect([endings, sent()]).toEqual([['at once'], ['reset CANCEL', 'released']]);
  });

  it('that the upstream breaks off is reset', () => {
    const { sent, sink } = tunnelling();
    sink.emit('close');
    expect(sent()).toEqual(['reset CONNECT_ERROR', 'released']);
  });
});
