import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import {
  type ConnectionStream,
  Http2DownstreamStream,
} from '../../../../src/proxy/downstream/http2/stream.ts';
import type { ServerStream } from '../../../../src/proxy/http2/server-connection.ts';
import { CoalescingWriter } from '../../../../src/proxy/io/coalescing-writer.ts';
import type { TakeBytes } from '../../../../src/proxy/io/sockets.ts';
import { settle } from '../../../support/manual-clock.ts';
import { FakeBearer, FIRST } from '../../../wire/fake-bearer.ts';
import { chunk, ok } from '../../../wire/messages.ts';
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

describe('the body of an HTTP/2 request', () => {
  it('is sent upstream as it comes, and its window is returned once it was taken', () => {
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

  it('ends with its trailers, of which the allowed ones are forwarded', () => {
    const { read, stream, upstreamGot } = begin({ fields: ['te', 'trailers'] });
    read('one');
    stream.takeTrailers(['x-sum', '7', 'authorization', 'Bearer smuggled']);
    stream.afterRead();
    expect([stream.requestComplete, stream.inputEnded]).toEqual([true, true]);
    expect(upstreamGot()).toBe(`${chunk('one')}0\r\nx-sum: 7\r\n\r\n`);
  });

  it('waits for the token together with its window', async () => {
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

  it('that the upstream has not taken stays counted in the window', () => {
    const { read, sent, stream } = begin();
    stream.takeData(Buffer.from('one'), false);
    stream.pause();
    stream.afterRead();
    read('four');
    expect(sent()).toEqual([]);
    stream.resume();
    expect(sent()).toEqual(['gives 7 back']);
  });

  it('has its window returned after the read, not during it', () => {
    const { sent, stream } = begin();
    stream.takeData(Buffer.from('one'), false);
    stream.resume();
    expect(sent()).toEqual([]);
  });

  it('ends only once', () => {
    const { read, stream, upstreamGot } = begin();
    read('one', true);
    stream.pause();
    stream.resume();
    expect(upstreamGot()).toBe(`${chunk('one')}0\r\n\r\n`);
  });

  it('keeps its order when part of it waits', () => {
    const { read, stream, upstreamGot } = begin();
    stream.pause();
    read('one ');
    stream.resume();
    read('two', true);
    expect(upstreamGot()).toBe(`${chunk('one ')}${chunk('two')}0\r\n\r\n`);
  });

  it('of a finished request is dropped and its window returned at once', () => {
    const { read, sent, stream } = begin({ route: { match: { pathPrefix: '/api' } } });
    sent();
    stream.pause();
    stream.takeData(Buffer.from('late'), false);
    expect([stream.transaction.over, sent()]).toEqual([true, ['gives 4 back']]);
    read('later', true);
    expect([stream.inputEnded, sent()]).toEqual([true, ['gives 5 back']]);
  });

  it('that waits has its window returned when the request ends', () => {
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

describe('100-continue over HTTP/2', () => {
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
  ])('is awaited %s: %s %s', (_, asked, awaits) => {
    expect(begin(asked).stream.awaitsContinue).toBe(awaits);
  });
});

describe('an answer over HTTP/2', () => {
  it('to HEAD has no body if the sidecar refuses, nor has a 205 of the upstream', () => {
    const refused = { endStream: true, route: { ...SPARE, match: { pathPrefix: '/api' } } };
    expect(begin({ ...refused, method: 'HEAD' }).sent()[0]).toMatch(/^fields :status,404,.* last$/);
    const { sent, upstream } = begin({ method: 'GET', endStream: true });
    upstream().bring(`HTTP/1.1 205 Reset\r\nTransfer-Encoding: chunked\r\n\r\n${chunk('x')}0\r\n\r\n`);
    expect(sent()[0]).toMatch(/ last$/);
  });

  it('of an upstream is sent whole and offsets resets', async () => {
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

  it('without a body ignores data given to it', () => {
    const { sent, stream } = begin({ method: 'GET', endStream: true });
    stream.respond({ status: 200, reason: '', fields: [], connectionOptions: [] }, 'none');
    stream.data(Buffer.from('x'));
    stream.end([], IDLE_MS);
    expect(sent()[0]).toBe('fields :status,200 last');
  });

  it('is reset when the app does not open the window in time', async () => {
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

describe('an HTTP/2 app that', () => {
  it('has left amid its answer gets no more of it', async () => {
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

describe('an HTTP/2 tunnel', () => {
  it('passes on a half-close that came before it was open', () => {
    expect(tunnelling({ endStream: true }).sink.writableEnded).toBe(true);
  });

  it('pauses the upstream when the app’s window is used up, and resumes it later', () => {
    const { allowed, say, sent, sink, stream } = tunnelling();
    allowed.window = 3;
    say('four');
    expect([sent(), sink.isPaused()]).toEqual([['data fou'], true]);
    allowed.window = 1;
    stream.mayGoOn();
    expect([sent(), sink.isPaused()]).toEqual([['data r'], false]);
  });

  it('keeps the app’s window closed while the upstream is slow', () => {
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

  it('is cut on both sides when the app does not take its end in time', async () => {
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

  it('whose upstream ended and closed is over, and the rest from the app is not wanted', () => {
    const { sent, sink } = tunnelling();
    sink.push(null);
    sink.emit('end');
    expect(sent()).toEqual(['data  last']);
    Object.defineProperty(sink, 'readableEnded', { value: true });
    sink.emit('close');
    expect(sent()).toEqual(['reset NO_ERROR', `leaves in ${IDLE_MS} ms`, 'released']);
  });

  it('whose upstream closed before all was sent is over once it has been sent', () => {
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
  ])('that the app has %s is closed in the same way at the upstream', (_, byReset, how) => {
    const { endings, sent, stream } = tunnelling();
    stream.gone(byReset);
    expect([endings, sent()]).toEqual([[how], ['released']]);
  });

  it('whose app half-closes the connection is reset and closed upstream', () => {
    const { endings, sent, stream } = tunnelling();
    stream.leave();
    expect([endings, sent()]).toEqual([['at once'], ['reset CANCEL', 'released']]);
  });
});
