import { describe, expect, it } from 'vitest';
import type {
  IncomingRequest,
  OutgoingRequest,
  UpstreamUser,
} from '../../../../src/proxy/streams/contract.ts';
import { UpstreamFailures } from '../../../../src/proxy/upstream/failures.ts';
import type { Http2Connection } from '../../../../src/proxy/upstream/http2/connection.ts';
import { Http2UpstreamStream } from '../../../../src/proxy/upstream/http2/stream.ts';

const RESPONSE_MS = 600;
const IDLE_MS = 90;
const TIMEOUTS = { responseMs: RESPONSE_MS, idleMs: IDLE_MS };
/** Of the error codes of RFC 9113 §7. */
const [CANCEL, REFUSED_STREAM] = [8, 7];

interface RequestKind extends Partial<Omit<IncomingRequest, 'fields'>> {
  readonly fields?: string[];
  readonly hasBody?: boolean;
  /** What the app told of the body's length, where nothing can follow it. */
  readonly reused?: boolean;
  readonly mostSectionBytes?: number;
}

/** A stream, the connection that it is lent, and all that the user and the connection are told. */
function start({
  hasBody = false,
  reused = false,
  mostSectionBytes = Number.POSITIVE_INFINITY,
  ...asked
}: RequestKind = {}) {
  const told: string[] = [];
  const errors: string[] = [];
  const tell = (what: string) => void told.push(what);
  const allowed = { window: 1e9, takesMore: true, opens: true, nowMs: 1_000, flushes: 0 };
  const wire: { state: { kind: string; endedBy?: string } } = { state: { kind: 'open' } };
  const connection = {
    reused,
    nowMs: () => allowed.nowMs,
    due: (atMs: number) => tell(`due ${atMs}`),
    lend: () => tell('lent'),
    release: () => tell('released'),
    outlet: {
      mostSectionBytes,
      get takesMore() {
        return allowed.takesMore;
      },
      request(
        _stream: unknown,
        fields: readonly string[],
        what: string,
        endStream: boolean,
        secret?: unknown,
      ) {
        if (!allowed.opens) return undefined;
        tell(
          `request ${fields[1]} ${what}${endStream ? ' last' : ''}${secret === undefined ? '' : ` never ${secret}`}`,
        );
        return wire;
      },
      sendable: () => allowed.window,
      send(_wire: unknown, bytes: Buffer, last: boolean) {
        const count = Math.min(bytes.length, allowed.window);
        if (count === 0) return 0;
        allowed.window -= count;
        tell(`data ${bytes.subarray(0, count)}${last && count === bytes.length ? ' last' : ''}`);
        return count;
      },
      end: (_wire: unknown, trailers: readonly string[]) => tell(`end ${trailers}`),
      wait: () => tell('waits for room'),
      waitNoMore: () => tell('waits no more'),
      reset: () => tell('reset'),
      came: (bytes: number) => tell(`${bytes} came`),
      passedOn: (_wire: unknown, bytes: number) => tell(`${bytes} passed on`),
      flushSoon: () => void allowed.flushes++,
    },
  } as unknown as Http2Connection;
  const user: UpstreamUser = {
    onConnected: () => tell('connected'),
    onInterim: ({ status }) => tell(`informed ${status}`),
    onResponse: ({ status }, body) => tell(`answered ${status} ${body}`),
    onSwitched: () => tell('switched'),
    onData: (slice) => tell(`answer ${slice}`),
    onEnd: (trailers) => tell(`answer ended ${trailers}`),
    onReadEnd: () => tell('flush'),
    onDrain: () => tell('ready'),
    onStalled: () => tell('stalled'),
    onError(error, delivery) {
      errors.push(error.message);
      tell(`failed ${error.code} ${delivery}`);
    },
  };
  const request: IncomingRequest = {
    protocol: 'h2',
    method: 'GET',
    target: '/',
    targetForm: 'origin',
    host: 'app.test',
    connectionOptions: [],
    contentLength: undefined,
    ...asked,
    fields: asked.fields ?? [],
  };
  const stream = new Http2UpstreamStream(user, request, {
    scheme: 'http',
    failures: new UpstreamFailures('up.test'),
    timeouts: TIMEOUTS,
    onAbandoned: () => tell('abandoned'),
  });
  const outgoing: OutgoingRequest = {
    from: request,
    target: '/',
    authority: 'up.test',
    authorization: undefined,
    keepClientAuthorization: false,
    instanceId: 'me',
    upgrade: undefined,
    hasBody,
  };
  return {
    allowed,
    connection,
    errors,
    outgoing,
    stream,
    user,
    wire,
    /** What was told since this was last asked. */
    told: () => told.splice(0),
    send() {
      stream.lend(connection);
      stream.send(outgoing, allowed.nowMs);
      told.length = 0;
      return this;
    },
    head(
      status = 200,
      { endStream = false, contentLength = undefined as number | undefined, kind = 'final' as const } = {},
    ) {
      stream.answerCame({ kind, status, fields: [], contentLength }, endStream, []);
    },
    data: (text: string, endStream = false) => stream.dataCame(Buffer.from(text), endStream),
  };
}

describe('a request on an HTTP/2 upstream stream', () => {
  it('is sent when its connection is lent, and its answer is timed from then', () => {
    const { stream, connection, outgoing, told } = start({ neverIndexed: ['x-secret'] });
    expect([stream.ready, stream.dueAtMs, stream.drained]).toEqual([false, Number.POSITIVE_INFINITY, true]);
    stream.lend(connection);
    expect([stream.ready, stream.protocol]).toEqual([true, 'h2']);
    stream.send(outgoing, 1_000);
    expect(told()).toEqual(['lent', 'request GET ordinary last never x-secret', 'due 1600']);
    expect([stream.ready, stream.dueAtMs]).toEqual([false, 1_600]);
    expect(() => stream.send(outgoing, 1_000)).toThrow(expect.objectContaining({ code: 'internal' }));
    expect(() => stream.tunnelEnd).toThrow(expect.objectContaining({ code: 'internal' }));
  });

  it('fails if no stream can be opened', () => {
    const { allowed, stream, connection, outgoing } = start();
    stream.lend(connection);
    allowed.opens = false;
    expect(() => stream.send(outgoing, 1_000)).toThrow(expect.objectContaining({ code: 'internal' }));
  });

  it('has its answer timed from the end of its body', () => {
    const { allowed, stream, told } = start({ hasBody: true }).send();
    expect(stream.dueAtMs).toBe(Number.POSITIVE_INFINITY);
    stream.data(Buffer.from('one'));
    stream.touch();
    expect(told()).toEqual(['data one', 'due 1090']);
    allowed.nowMs = 1_050;
    allowed.flushes = 0;
    stream.end(['X-Sum', '7'], 1_050);
    expect(allowed.flushes).toBe(1);
    expect(told()).toEqual(['end x-sum,7', 'due 1650']);
    stream.touch();
    expect([told(), stream.dueAtMs]).toEqual([[], 1_650]);
  });

  it('of known length ends with its last octet if no trailers can follow', () => {
    const { stream, told, wire } = start({ hasBody: true, protocol: 'http1', contentLength: 5 }).send();
    stream.data(Buffer.from('abc'));
    stream.data(Buffer.from('de'));
    wire.state = { kind: 'half_closed', endedBy: 'local' };
    stream.end([], 1_000);
    expect(told()).toEqual(['data abc', 'data de last', 'due 1600']);
    const h2 = start({ hasBody: true, contentLength: 2 }).send();
    h2.stream.data(Buffer.from('ab'));
    expect(h2.told()).toEqual(['data ab']);
  });
});

describe('a body that the upstream does not take', () => {
  it('waits together with the app until it has been sent', () => {
    const { allowed, stream, told } = start({ hasBody: true }).send();
    expect([stream.flush(), allowed.flushes]).toEqual([true, 1]);
    allowed.window = 2;
    stream.data(Buffer.from('four'));
    expect([stream.drained, stream.flush()]).toEqual([false, false]);
    expect(told()).toEqual(['data fo', 'waits for room', 'waits for room']);
    stream.end([], 1_000);
    expect([stream.sendWaiting(), told()]).toEqual(['stuck', []]);
    allowed.window = 1;
    expect([stream.sendWaiting(), told()]).toEqual(['more', ['data u', 'due 1090']]);
    allowed.window = 9;
    expect(stream.sendWaiting()).toBe('done');
    expect(told()).toEqual(['data r', 'due 1090', 'end ', 'due 1600', 'ready']);
    expect([stream.drained, stream.sendWaiting(), told()]).toEqual([true, 'done', []]);
  });

  it('is still awaited when the answer is released before', () => {
    const { allowed, head, stream, told } = start({ hasBody: true }).send();
    allowed.window = 0;
    stream.data(Buffer.from('x'));
    stream.flush();
    head();
    stream.holdResponse();
    told();
    stream.releaseResponse();
    expect(told()).toEqual(['due 1090', 'flush']);
  });

  it('is dropped when the upstream wants no more of it', () => {
    const { allowed, stream, told, wire } = start({ hasBody: true }).send();
    allowed.window = 0;
    stream.data(Buffer.from('x'));
    stream.flush();
    wire.state = { kind: 'half_closed', endedBy: 'local' };
    allowed.window = 9;
    stream.data(Buffer.from('y'));
    told();
    stream.end([], 1_000);
    expect([stream.sendWaiting(), told()]).toEqual(['done', ['due 1600', 'ready']]);
  });

  it('continues when the upstream has ended its answer', () => {
    const { stream, told, wire } = start({ hasBody: true }).send();
    wire.state = { kind: 'half_closed', endedBy: 'remote' };
    stream.data(Buffer.from('x'));
    stream.end([], 1_000);
    expect(told()).toEqual(['data x', 'end ', 'due 1600']);
    wire.state = { kind: 'closed' };
    stream.data(Buffer.from('y'));
    expect(told()).toEqual([]);
  });

  it('and that ends while the answer is held starts no timeout', () => {
    const { head, stream, told } = start({ hasBody: true }).send();
    head();
    stream.holdResponse();
    told();
    stream.end([], 1_000);
    expect([told(), stream.dueAtMs]).toEqual([['end '], Number.POSITIVE_INFINITY]);
  });

  it('and that ends after the answer began starts the idle timeout', () => {
    const { head, stream, told } = start({ hasBody: true }).send();
    head();
    told();
    stream.end([], 1_000);
    expect([told(), stream.dueAtMs]).toEqual([['end ', 'due 1090'], 1_090]);
  });

  it('reports nothing while the answer is held', () => {
    const { allowed, head, stream, told } = start({ hasBody: true }).send();
    allowed.window = 0;
    stream.data(Buffer.from('x'));
    stream.flush();
    head();
    stream.holdResponse();
    allowed.window = 9;
    told();
    expect([stream.sendWaiting(), told()]).toEqual(['done', ['data x']]);
    stream.releaseResponse();
    expect(told()).toEqual(['due 1090', 'flush', 'due 1090', 'ready']);
  });

  it('is ignored after the request is over', () => {
    const { stream, told } = start({ hasBody: true }).send();
    stream.cancel();
    told();
    stream.data(Buffer.from('x'));
    stream.end([], 1_000);
    stream.touch();
    stream.pause();
    stream.resume();
    stream.holdResponse();
    stream.releaseResponse();
    stream.hasLeft();
    stream.tooLate();
    stream.pieceEnded(1_000);
    stream.answerCame({ kind: 'final', status: 200, fields: [], contentLength: 0 }, true, []);
    stream.dataCame(Buffer.from('x'), true);
    stream.trailersCame([]);
    stream.brokenOff({ kind: 'reset', code: CANCEL as never });
    expect([stream.flush(), stream.sendWaiting(), told()]).toEqual([true, 'done', []]);
  });
});

describe('an answer on an HTTP/2 upstream stream', () => {
  it('is passed on as it comes, and its window is returned', () => {
    const { allowed, data, head, stream, told } = start().send();
    head(200, { contentLength: 6 });
    data('one');
    expect(told()).toEqual(['answered 200 length', '3 came', 'answer one']);
    allowed.nowMs = 1_100;
    stream.pieceEnded(1_100);
    expect(told()).toEqual(['due 1190', 'flush', '3 passed on']);
    data('two', true);
    expect(told()).toEqual(['3 came', 'answer two', 'reset', '3 passed on', 'released', 'answer ended ']);
    expect(stream.dueAtMs).toBe(Number.POSITIVE_INFINITY);
  });

  it.each<[string, number, RequestKind, { endStream?: boolean; contentLength?: number }, string]>([
    ['to HEAD', 200, { method: 'HEAD' }, { contentLength: 3 }, 'none'],
    ['204', 204, {}, {}, 'none'],
    ['304', 304, {}, { contentLength: 3 }, 'none'],
    ['that ends with its head, for HTTP/2', 200, {}, { endStream: true }, 'none'],
    ['that ends with its head, for HTTP/1.1', 200, { protocol: 'http1' }, { endStream: true }, 'open'],
    ['of a length', 200, {}, { contentLength: 3 }, 'length'],
    ['of no length', 200, {}, {}, 'open'],
  ])('%s: %s', (_, status, asked, came, body) => {
    const { head, told } = start(asked).send();
    head(status, came);
    expect(told()[0]).toBe(`answered ${status} ${body}`);
    if (came.endStream) head(status, came);
  });

  it('may follow interim answers', () => {
    const { stream, told } = start().send();
    stream.answerCame({ kind: 'interim', status: 103, fields: [], contentLength: undefined }, false, []);
    expect(told()).toEqual(['informed 103']);
    stream.tooLate();
    expect(told()).toEqual(['reset', 'released', 'failed upstream_timeout lost']);
  });

  it('is timed from its last piece', () => {
    const { data, head, stream, told } = start().send();
    head();
    data('one');
    stream.pieceEnded(1_000);
    expect(stream.dueAtMs).toBe(1_090);
    told();
    stream.tooLate();
    expect([told(), stream.dueAtMs]).toEqual([['stalled'], Number.POSITIVE_INFINITY]);
  });
});

describe('a held answer on an HTTP/2 upstream stream', () => {
  it('is kept untimed and passed on when released', () => {
    const { data, head, stream, told } = start().send();
    head();
    stream.holdResponse();
    expect(stream.dueAtMs).toBe(Number.POSITIVE_INFINITY);
    data('one');
    data('two');
    stream.pieceEnded(1_000);
    stream.touch();
    stream.resume();
    expect(told()).toEqual(['answered 200 open', '3 came', '3 came']);
    stream.releaseResponse();
    const passed = told();
    expect(
      passed
        .filter((what) => what.startsWith('answer '))
        .join('')
        .replaceAll('answer ', ''),
    ).toBe('onetwo');
    expect(passed.at(0)).toBe('due 1090');
    expect(passed.at(-1)).toBe('6 passed on');
    stream.releaseResponse();
    expect(told()).toEqual([]);
  });

  it('stops being passed on if its user cancels after a read', () => {
    const { allowed, head, stream, told, user } = start({ hasBody: true }).send();
    allowed.takesMore = false;
    stream.flush();
    allowed.takesMore = true;
    user.onReadEnd = () => stream.cancel();
    head();
    stream.holdResponse();
    told();
    stream.releaseResponse();
    expect(told()).toEqual(['due 1090', 'reset', 'released']);
  });

  it('stops being passed on if its user cancels after a piece', () => {
    const { data, head, stream, told, user } = start().send();
    const onData = user.onData;
    user.onData = (slice) => {
      onData(slice);
      stream.cancel();
    };
    head();
    stream.holdResponse();
    data('one');
    data('two', true);
    told();
    stream.releaseResponse();
    expect(told()).toEqual(['due 1090', 'answer one', 'reset', '6 passed on', 'released']);
  });

  it('that failed meanwhile fails when released, and no more of the request is sent', () => {
    const { allowed, head, stream, told } = start({ hasBody: true }).send();
    allowed.window = 0;
    stream.data(Buffer.from('x'));
    head();
    stream.holdResponse();
    told();
    stream.brokenOff({ kind: 'reset', code: CANCEL as never });
    stream.brokenOff({ kind: 'fault', reason: 'stream_closed' });
    expect(told()).toEqual(['waits no more', 'waits no more']);
    allowed.window = 9;
    expect([stream.sendWaiting(), told()]).toEqual(['done', []]);
    stream.releaseResponse();
    expect(told()).toEqual(['due 1090', 'reset', 'released', 'failed upstream_protocol_error lost']);
  });

  it('fails at once after an internal fault', () => {
    const { head, stream, told } = start().send();
    head();
    stream.holdResponse();
    told();
    const internal = Object.assign(new Error('unforeseen'), { code: 'internal' });
    stream.connectionFailed(internal as never, false);
    expect(told()).toEqual(['reset', 'released', 'failed internal lost']);
  });

  it('is cancelled when another answer replaces it', () => {
    const { data, head, stream, told } = start().send();
    head();
    stream.holdResponse();
    data('one');
    told();
    stream.cancel();
    expect(told()).toEqual(['reset', '3 passed on', 'released']);
  });
});

describe('the delivery of a failed request', () => {
  const failures = new UpstreamFailures('up.test');

  it.each([
    ['refused by the upstream', { kind: 'reset', code: REFUSED_STREAM }, 'unprocessed'],
    ['reset by it', { kind: 'reset', code: CANCEL }, 'lost'],
    ['answered against a rule', { kind: 'fault', reason: 'stream_closed' }, 'lost'],
    ['passed over by GOAWAY', { kind: 'unprocessed' }, 'unprocessed'],
  ])('that is %s', (_, how, delivery) => {
    const { stream, told } = start().send();
    stream.brokenOff(how as never);
    expect(told()).toEqual(['reset', 'released', `failed upstream_protocol_error ${delivery}`]);
  });

  it('that was refused after an interim answer is lost', () => {
    const { stream, told } = start().send();
    stream.answerCame({ kind: 'interim', status: 103, fields: [], contentLength: undefined }, false, []);
    stream.brokenOff({ kind: 'reset', code: REFUSED_STREAM as never });
    expect(told().at(-1)).toBe('failed upstream_protocol_error lost');
  });

  it.each<[string, { reused: boolean; left: boolean; answer: boolean; byPeer: boolean }, string]>([
    ['before it had left', { reused: true, left: false, answer: false, byPeer: true }, 'unsent'],
    ['by what is wrong here', { reused: true, left: false, answer: false, byPeer: false }, 'lost'],
    [
      'that had stood, without an answer',
      { reused: true, left: true, answer: false, byPeer: true },
      'unanswered',
    ],
    ['that was new', { reused: false, left: true, answer: false, byPeer: true }, 'lost'],
    ['amid its answer', { reused: true, left: true, answer: true, byPeer: true }, 'lost'],
  ])('whose connection fails %s', (_, { reused, left, answer, byPeer }, delivery) => {
    const { head, stream, told } = start({ reused }).send();
    if (left) stream.hasLeft();
    if (answer) head();
    stream.connectionFailed(failures.closed(), byPeer);
    expect(told().at(-1)).toBe(`failed upstream_protocol_error ${delivery}`);
  });

  it('whose connection fails before it was sent is unsent', () => {
    const { connection, stream, told } = start();
    stream.lend(connection);
    stream.connectionFailed(failures.closed(), true);
    expect(told()).toEqual(['lent', 'released', 'failed upstream_protocol_error unsent']);
    expect(stream.ready).toBe(false);
  });

  it('without a connection is reported once and never after one was lent', () => {
    const { stream, told } = start();
    stream.notConnected(failures.closed());
    stream.notConnected(failures.closed());
    expect(told()).toEqual(['failed upstream_protocol_error lost']);
    const sent = start().send();
    sent.stream.notConnected(failures.closed());
    expect(sent.told()).toEqual([]);
  });

  it('that is cancelled depends on how far it got', () => {
    const waiting = start();
    waiting.stream.cancel();
    waiting.stream.cancel();
    expect(waiting.told()).toEqual(['abandoned']);
    const lent = start();
    lent.stream.lend(lent.connection);
    lent.stream.release();
    expect(lent.told()).toEqual(['lent', 'released']);
    const sent = start().send();
    sent.stream.cancel();
    expect(sent.told()).toEqual(['reset', 'released']);
    const replaced = start();
    replaced.stream.replaced();
    replaced.stream.cancel();
    expect(replaced.told()).toEqual([]);
  });
});
