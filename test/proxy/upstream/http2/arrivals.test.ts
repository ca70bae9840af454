import { expect, it } from 'vitest';
import type { AnswerSection } from '../../../../src/proxy/http2/answer-section.ts';
import { ErrorCode } from '../../../../src/proxy/http2/error-code.ts';
import type { Broken } from '../../../../src/proxy/http2/stream-handler.ts';
import { Arrivals } from '../../../../src/proxy/upstream/http2/arrivals.ts';
import type { CarriedStream } from '../../../../src/proxy/upstream/http2/carried-stream.ts';
import type { WireStream } from '../../../../src/proxy/upstream/http2/outlet.ts';
import { carried } from './bare-connection.ts';

const ANSWER: AnswerSection = { kind: 'final', status: 200, fields: [], contentLength: undefined };
/** What nobody waits for any more. */
const FORGOTTEN = { context: undefined } as WireStream;

function start() {
  const told: string[] = [];
  const arrivals = new Arrivals({
    onRefused: () => void told.push('refused'),
    onEnhanceYourCalm: () => void told.push('calm'),
    onGoaway: () => void told.push('goaway'),
    onWritable: () => void told.push('writable'),
    onMayOpen: () => void told.push('may open'),
  });
  const request = (name: string): WireStream => {
    const tell = (what: string) => void told.push(`${name} ${what}`);
    const { stream } = carried({
      answerCame: ({ status }) => tell(`answered ${status}`),
      dataCame: (data) => tell(`got ${data}`),
      trailersCame: (fields) => tell(`ended by ${fields}`),
      brokenOff: ({ kind }) => tell(`broken by ${kind}`),
      pieceEnded: (atMs) => tell(`has all of it at ${atMs}`),
    } satisfies Partial<CarriedStream>);
    return { context: stream } as unknown as WireStream;
  };
  return { arrivals, request, told: () => told.splice(0) };
}

it('each request is told what came for it, and that this is all of the piece', () => {
  const { arrivals, request, told } = start();
  const [one, two] = [request('one'), request('two')];
  arrivals.answer(one, ANSWER, false, []);
  arrivals.data(two, Buffer.from('x'), false);
  arrivals.trailers(two, ['a', 'b']);
  expect(told()).toEqual(['one answered 200', 'two got x', 'two ended by a,b']);
  arrivals.pieceEnded(7);
  expect(told()).toEqual(['one has all of it at 7', 'two has all of it at 7']);
  arrivals.pieceEnded(8);
  expect(told()).toEqual([]);
});

it('what comes for a request that nobody waits for any more is dropped', () => {
  const { arrivals, told } = start();
  arrivals.answer(FORGOTTEN, ANSWER, false, []);
  arrivals.data(FORGOTTEN, Buffer.from('x'), false);
  arrivals.trailers(FORGOTTEN, []);
  arrivals.broken(FORGOTTEN, { kind: 'unprocessed' });
  arrivals.pieceEnded(7);
  expect([arrivals.answeredAny, told()]).toEqual([true, []]);
});

it.each<[Broken, boolean]>([
  [{ kind: 'reset', code: ErrorCode.REFUSED_STREAM }, true],
  [{ kind: 'reset', code: ErrorCode.CANCEL }, false],
  [{ kind: 'fault', reason: 'stream_closed' }, false],
  [{ kind: 'unprocessed' }, false],
])('a request that is broken off by %j says of the upstream that it refuses: %s', (how, refuses) => {
  const { arrivals, request, told } = start();
  arrivals.broken(request('one'), how);
  expect(arrivals.refuses).toBe(refuses);
  expect(told()).toEqual([...(refuses ? ['refused'] : []), `one broken by ${how.kind}`]);
  arrivals.answer(FORGOTTEN, ANSWER, true, []);
  expect(arrivals.refuses).toBe(false);
});

it('the connection hears of windows, of room, and of its end', () => {
  const { arrivals, told } = start();
  arrivals.writable(undefined);
  arrivals.mayOpen();
  expect([arrivals.goawayCode, arrivals.answeredAny]).toEqual([undefined, false]);
  arrivals.goaway({ lastStreamId: 0, code: ErrorCode.ENHANCE_YOUR_CALM } as never);
  expect([arrivals.goawayCode, told()]).toEqual([
    ErrorCode.ENHANCE_YOUR_CALM,
    ['writable', 'may open', 'goaway'],
  ]);
});
