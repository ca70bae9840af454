import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { ErrorCode } from '../../../../src/proxy/http2/errors.ts';
import type { CarriedStream } from '../../../../src/proxy/upstream/http2/connection-writer.ts';
import { frame, Setting, settings, Type } from '../../../wire/http2/frames.ts';
import { framesIn } from '../../downstream/http2/sent-frames.ts';
import { ANSWER, carried, connect, FIELDS, SETTINGS } from './bare-connection.ts';

const PREFACE_LENGTH = 24;
const IDLE_MS = 55_000;
const PONG = frame(Type.PING, 1, 0, 'sidecar?').toString('hex');

type Bare = ReturnType<typeof connect>;

/** Frames of a type that were sent. */
function sent({ socket }: Bare, type: number) {
  return framesIn(socket.text.slice(PREFACE_LENGTH)).filter((one) => one.type === type);
}

/** Codes of the GOAWAY that were sent. */
const goaways = (bare: Bare) => sent(bare, Type.GOAWAY).map(({ payload }) => payload.readUInt32BE(4));

const allow = (streams: number) => settings([Setting.MAX_CONCURRENT_STREAMS, streams]).toString('hex');

const goaway = (last: number, code: number) => {
  const payload = Buffer.alloc(8);
  payload.writeUInt32BE(last);
  payload.writeUInt32BE(code, 4);
  return frame(Type.GOAWAY, 0, 0, payload).toString('hex');
};

/** A connection on which the upstream has said hello, and one request is carried. */
function startBusy(options: Parameters<typeof connect>[0] = {}, wrong: Partial<CarriedStream> = {}) {
  const bare = connect(options);
  bare.bring(SETTINGS);
  const request = carried(wrong);
  bare.connection.lend(request.stream);
  const wire = bare.connection.outlet.request(request.stream, FIELDS, 'ordinary', false);
  bare.free();
  return { ...bare, request, wire };
}

describe('the free streams of an HTTP/2 upstream connection', () => {
  it('are assumed until the upstream sends its SETTINGS', () => {
    const { allowed, bring, connection, free } = connect({ assumedStreams: 3 });
    expect([connection.free, connection.freeSoon]).toEqual([3, 0]);
    bring(allow(5));
    expect([allowed(), free(), connection.free]).toEqual([[5], [5], 5]);
    bring(allow(5));
    expect([allowed(), free()]).toEqual([[], []]);
    bring(allow(0));
    expect([allowed(), free(), connection.free]).toEqual([[0], [0], 0]);
  });

  it('are limited whatever the upstream allows', () => {
    const { bring, connection } = connect();
    bring(allow(1e6));
    expect(connection.free).toBe(128);
  });

  it('are taken by lending, and reported when returned', () => {
    const { bring, connection, free } = connect();
    bring(allow(2));
    const [one, two] = [carried().stream, carried().stream];
    expect(connection.idle).toBe(true);
    connection.lend(one);
    connection.lend(two);
    expect([connection.free, connection.idle, free()]).toEqual([0, false, [2]]);
    connection.release(one);
    expect([connection.idle, free()]).toEqual([false, [1]]);
    connection.release(one);
    expect(free()).toEqual([]);
    connection.release(two);
    expect([connection.idle, free()]).toEqual([true, [2]]);
  });

  it('are reported as soon as the upstream ends a request', () => {
    const { bring, connection, free } = connect();
    bring(allow(1));
    const { stream } = carried();
    connection.outlet.request(stream, FIELDS, 'ordinary', true);
    expect([free(), connection.free]).toEqual([[1], 0]);
    bring('00000101050000000188');
    expect([free(), connection.free]).toEqual([[1], 1]);
  });

  it('are reported when the socket takes more', () => {
    const { free, socket } = connect();
    socket.emit('drain');
    expect(free()).toEqual([100]);
  });
});

describe('an HTTP/2 upstream connection', () => {
  it('sends preface and SETTINGS as soon as it is established', async () => {
    const bare = connect();
    await turn();
    expect(bare.socket.text.slice(0, PREFACE_LENGTH)).toBe('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    expect(sent(bare, Type.SETTINGS)).toHaveLength(1);
  });

  it('counts as reused after its first answer, and as refusing from a refusal to the next answer', () => {
    const { allowed, bring, connection } = startBusy();
    allowed();
    expect([connection.reused, connection.refuses]).toEqual([false, false]);
    bring(frame(Type.RST_STREAM, 0, 1, '\0\0\0\x07').toString('hex'));
    expect([connection.reused, connection.refuses]).toEqual([false, true]);
    expect(allowed()).toHaveLength(1);
    connection.outlet.request(carried().stream, FIELDS, 'ordinary', false);
    bring('00000101040000000388');
    expect([connection.reused, connection.refuses]).toEqual([true, false]);
  });

  it('tells its requests of the end of each read and of timeouts', async () => {
    const ends: number[] = [];
    const late: number[] = [];
    const bare = startBusy({}, { pieceEnded: (at) => void ends.push(at) });
    const { stream } = bare.request;
    const setDue = (dueAtMs: number) => Object.assign(stream, { dueAtMs });
    stream.tooLate = () => {
      late.push(bare.clock.monotonicMs());
      setDue(Number.POSITIVE_INFINITY);
    };
    bare.bring(`${ANSWER}${frame(Type.DATA, 0, 1, 'x').toString('hex')}`);
    expect(ends).toHaveLength(2);
    bare.bring(PONG);
    expect(ends).toEqual([1_000, 1_000]);
    setDue(1_500);
    bare.connection.due(1_500);
    await bare.clock.advance(200);
    setDue(1_700);
    await bare.clock.advance(1_000);
    expect(late).toEqual([1_700]);
  });

  it('is closed after an idle time', async () => {
    const bare = connect();
    bare.bring(SETTINGS);
    await bare.clock.advance(IDLE_MS - 1);
    expect(bare.told).toEqual([]);
    await bare.clock.advance(1);
    expect([bare.told, goaways(bare)]).toEqual([['gone', 'closed'], [ErrorCode.NO_ERROR]]);
    expect([bare.connection.free, bare.socket.destroyed]).toEqual([0, true]);
  });

  it('stays open while it carries a request and for the idle time after it', async () => {
    const bare = startBusy();
    await bare.clock.advance(IDLE_MS * 2);
    expect(bare.told).toEqual([]);
    bare.connection.release(bare.request.stream);
    await bare.clock.advance(IDLE_MS - 1);
    expect(bare.told).toEqual([]);
    await bare.clock.advance(1);
    expect(bare.told).toEqual(['gone', 'closed']);
  });

  it('whose GOAWAY does not leave is cut', async () => {
    const bare = connect();
    bare.bring(SETTINGS);
    await turn();
    bare.socket.stuck = true;
    // What was to be looked for sooner is not what it waits for now.
    bare.connection.due(bare.connection.nowMs() + 500);
    bare.connection.drain();
    expect([bare.told, bare.socket.destroyed]).toEqual([['gone', 'closed'], false]);
    await bare.clock.advance(999);
    expect(bare.socket.destroyed).toBe(false);
    bare.bring(goaway(0, 0));
    await bare.clock.advance(1);
    expect([bare.socket.destroyed, bare.told]).toEqual([true, ['gone', 'closed']]);
  });

  it('that is abandoned reports nothing to its requests', () => {
    const bare = startBusy();
    bare.connection.abandon();
    bare.connection.abandon();
    expect([bare.told, bare.request.failures, bare.socket.destroyed]).toEqual([['gone', 'closed'], [], true]);
    bare.connection.drain();
    bare.connection.due(0);
    bare.bring(ANSWER);
    expect([bare.told, bare.connection.free]).toEqual([['gone', 'closed'], 0]);
  });
});

describe('an HTTP/2 upstream connection that is being retired', () => {
  it.each([
    ['retired by the sidecar', ({ connection }: Bare) => connection.drain()],
    ['after the upstream’s GOAWAY', ({ bring }: Bare) => bring(goaway(1, 0))],
    [
      'too old for another request',
      ({ connection, clock }: Bare) =>
        connection.prepare(0, { monotonicMs: 1e9, wallMs: clock.now().wallMs }),
    ],
  ])('%s finishes its requests and closes after them', async (_, end) => {
    const bare = startBusy({ maxAgeMs: 10_000 });
    end(bare);
    expect([bare.told, bare.connection.free, bare.connection.freeSoon]).toEqual([['gone'], 0, 0]);
    bare.connection.drain();
    bare.connection.prepare(0, bare.clock.now());
    expect([bare.told, bare.request.failures, goaways(bare)]).toEqual([['gone'], [], []]);
    bare.connection.release(bare.request.stream);
    expect([bare.told, goaways(bare)]).toEqual([['gone', 'closed'], [ErrorCode.NO_ERROR]]);
    expect(bare.free()).toEqual([]);
  });

  it('for its age makes room for another even if it is full', async () => {
    const bare = startBusy({ maxAgeMs: 60_000 });
    bare.bring(allow(0));
    await bare.clock.advance(59_000);
    expect(bare.told).toEqual([]);
    await bare.clock.advance(1_000);
    expect([bare.told, bare.request.failures]).toEqual([['gone'], []]);
  });

  it('for its age offers no more streams', async () => {
    const bare = startBusy({ maxAgeMs: 10_000 });
    await bare.clock.advance(10_000);
    bare.connection.release(bare.request.stream);
    expect([bare.told, bare.free()]).toEqual([['gone', 'closed'], []]);
  });
});

describe('an HTTP/2 upstream connection without recent frames', () => {
  const LONG = 1e9;

  it('within the trusted time is lent at once', async () => {
    const bare = startBusy();
    await bare.clock.advance(999);
    bare.connection.prepare(1_000, bare.clock.now());
    expect(bare.connection.free).toBeGreaterThan(0);
    expect(bare.free()).toEqual([]);
  });

  it('beyond the trusted time is checked for its end before it is lent', async () => {
    const bare = startBusy();
    await bare.clock.advance(1_000);
    bare.connection.prepare(1_000, bare.clock.now());
    bare.connection.prepare(1_000, bare.clock.now());
    expect([bare.connection.free, bare.connection.freeSoon > 0]).toEqual([0, true]);
    await turn();
    await turn();
    expect([bare.free(), sent(bare, Type.PING)]).toEqual([[127], []]);
  });

  it('that has ended is not lent', async () => {
    const bare = startBusy();
    await bare.clock.advance(1_000);
    bare.connection.prepare(1_000, bare.clock.now());
    bare.socket.emit('end');
    await turn();
    await turn();
    expect([bare.free(), bare.told, bare.connection.freeSoon]).toEqual([[], ['gone', 'closed'], 0]);
  });

  it.each(['the monotonic clock shows', 'the wall clock shows'])(
    'for ten seconds because %s has to answer PING first',
    async (how) => {
      const bare = startBusy();
      if (how === 'the monotonic clock shows') {
        await bare.clock.advance(9_999);
        bare.connection.prepare(LONG, bare.clock.now());
        expect(bare.connection.free).toBeGreaterThan(0);
        await bare.clock.advance(1);
      } else bare.clock.stepWall(10_000);
      bare.connection.prepare(LONG, bare.clock.now());
      await turn();
      expect([bare.connection.free, bare.connection.freeSoon > 0]).toEqual([0, true]);
      expect(sent(bare, Type.PING).map(({ payload }) => payload.toString())).toEqual(['sidecar?']);
      bare.bring(PONG);
      expect(bare.free()).toEqual([127]);
      await bare.clock.advance(5_000);
      expect(bare.told).toEqual([]);
    },
  );

  it.each([
    [2_000, 10_000],
    [500, 500],
  ])(
    'and without an answer to PING within %s ms fails, with a connect timeout of %s',
    async (ms, connectMs) => {
      const bare = startBusy({ connectMs });
      await bare.clock.advance(10_000);
      bare.connection.prepare(LONG, bare.clock.now());
      await turn();
      await bare.clock.advance(ms - 1);
      expect(bare.told).toEqual([]);
      await bare.clock.advance(1);
      expect(bare.told).toEqual(['gone', 'closed']);
      expect(bare.request.failures).toEqual([[expect.objectContaining({ code: 'upstream_timeout' }), true]]);
    },
  );

  it('that is retired before it answered PING finishes its requests', async () => {
    const bare = startBusy();
    await bare.clock.advance(10_000);
    bare.connection.prepare(LONG, bare.clock.now());
    bare.connection.drain();
    await bare.clock.advance(5_000);
    expect([bare.told, bare.request.failures]).toEqual([['gone'], []]);
  });
});

describe('an HTTP/2 upstream connection that breaks', () => {
  it.each<[string, (bare: Bare) => void, string]>([
    ['by its end', ({ socket }) => void socket.emit('end'), 'closed the connection without an answer'],
    ['as it closes', ({ socket }) => void socket.emit('close'), 'closed the connection without an answer'],
    [
      'by an error',
      ({ socket }) => void socket.emit('error', new Error('boom')),
      'broke off before its answer was whole: boom',
    ],
    [
      'by its end, after GOAWAY',
      ({ bring, socket }) => {
        bring(goaway(1, ErrorCode.ENHANCE_YOUR_CALM));
        socket.emit('end');
      },
      'GOAWAY ENHANCE_YOUR_CALM',
    ],
  ])('%s fails its requests as the upstream’s fault', (_, breakIt, message) => {
    const bare = startBusy();
    const other = carried();
    bare.connection.lend(other.stream);
    breakIt(bare);
    for (const { failures } of [bare.request, other]) {
      expect(failures).toEqual([
        [expect.objectContaining({ message: expect.stringContaining(message) }), true],
      ]);
    }
    expect([bare.told, bare.socket.destroyed, bare.connection.idle]).toEqual([
      ['gone', 'closed'],
      true,
      true,
    ]);
    bare.socket.emit('close');
    expect(bare.request.failures).toHaveLength(1);
  });

  it.each<[string, string, string]>([
    ['before its SETTINGS', '', 'does not speak HTTP/2'],
    ['after its SETTINGS', SETTINGS, 'did not speak valid HTTP/2'],
  ])('by violating a rule %s gets GOAWAY, and its requests fail', async (_, before, message) => {
    const bare = connect();
    if (before !== '') bare.bring(before);
    const request = carried();
    bare.connection.lend(request.stream);
    bare.bring(frame(Type.DATA, 0, 0, 'x').toString('hex'));
    expect(request.failures).toEqual([
      [expect.objectContaining({ message: expect.stringContaining(message) }), false],
    ]);
    expect(goaways(bare)).toEqual([ErrorCode.PROTOCOL_ERROR]);
    expect([bare.told, bare.connection.idle]).toEqual([['gone', 'closed'], true]);
  });
});
