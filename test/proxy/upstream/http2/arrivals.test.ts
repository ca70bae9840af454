import { expect, it } from 'vitest';
import type { StreamError } from '../../../../src/proxy/http2/connection-output.ts';
import { ErrorCode } from '../../../../src/proxy/http2/errors.ts';
import type { ResponseSection } from '../../../../src/proxy/http2/messages.ts';
import type { CarriedStream, WireStream } from '../../../../src/proxy/upstream/http2/connection-writer.ts';
import { carried, connect, SETTINGS } from './bare-connection.ts';

const ANSWER: ResponseSection = { kind: 'final', status: 200, fields: [], contentLength: undefined };
/** What nobody waits for any more. */
const FORGOTTEN = { context: undefined } as WireStream;

function start() {
  const bare = connect();
  const heard: string[] = [];
  const request = (name: string): WireStream => {
    const tell = (what: string) => void heard.push(`${name} ${what}`);
    const { stream } = carried({
      answerCame: ({ status }) => tell(`answered ${status}`),
      dataCame: (data) => tell(`got ${data}`),
      trailersCame: (fields) => tell(`ended by ${fields}`),
      brokenOff: ({ kind }) => tell(`broken by ${kind}`),
      pieceEnded: (atMs) => tell(`has all of it at ${atMs}`),
    } satisfies Partial<CarriedStream>);
    return { context: stream } as unknown as WireStream;
  };
  return { ...bare, request, heard: () => heard.splice(0) };
}

it('each request on a shared connection gets its own frames and the end of each read', () => {
  const { bring, clock, connection, request, heard } = start();
  const [one, two] = [request('one'), request('two')];
  connection.answer(one, ANSWER, false, []);
  connection.data(two, Buffer.from('x'), false);
  connection.trailers(two, ['a', 'b']);
  expect(heard()).toEqual(['one answered 200', 'two got x', 'two ended by a,b']);
  const atMs = clock.monotonicMs();
  bring(SETTINGS);
  expect(heard()).toEqual([`one has all of it at ${atMs}`, `two has all of it at ${atMs}`]);
  bring(SETTINGS);
  expect(heard()).toEqual([]);
});

it('frames for an abandoned request are dropped', () => {
  const { bring, connection, told, heard } = start();
  expect(connection.reused).toBe(false);
  connection.answer(FORGOTTEN, ANSWER, false, []);
  connection.data(FORGOTTEN, Buffer.from('x'), false);
  connection.trailers(FORGOTTEN, []);
  connection.broken(FORGOTTEN, { kind: 'unprocessed' });
  bring(SETTINGS);
  expect([connection.reused, heard(), told]).toEqual([true, [], []]);
});

it.each<[StreamError, boolean, boolean]>([
  [{ kind: 'reset', code: ErrorCode.REFUSED_STREAM }, true, false],
  [{ kind: 'reset', code: ErrorCode.ENHANCE_YOUR_CALM }, false, true],
  [{ kind: 'reset', code: ErrorCode.CANCEL }, false, false],
  [{ kind: 'fault', reason: 'stream_closed' }, false, false],
  [{ kind: 'unprocessed' }, false, false],
])(
  'a request ended by %j marks the upstream as refusing: %s, and retires the connection: %s',
  (how, refuses, retires) => {
    const { allowed, connection, request, told, heard } = start();
    connection.broken(request('one'), how);
    expect(connection.refuses).toBe(refuses);
    expect(allowed()).toHaveLength(refuses ? 1 : 0);
    expect(told.includes('gone')).toBe(retires);
    expect(heard()).toEqual([`one broken by ${how.kind}`]);
    connection.answer(FORGOTTEN, ANSWER, true, []);
    expect(connection.refuses).toBe(false);
  },
);

it('the connection handles window updates, new room and its end', () => {
  const { connection, free, socket, told } = start();
  const served: string[] = [];
  const { stream, failures } = carried({
    sendWaiting: () => {
      served.push('served');
      return 'done';
    },
  });
  connection.lend(stream);
  connection.outlet.wait(stream);
  free();
  connection.writable();
  expect(served).toEqual(['served']);
  connection.mayOpen();
  expect(free()).toHaveLength(1);
  connection.goaway({ lastStreamId: 0, code: ErrorCode.ENHANCE_YOUR_CALM } as never);
  expect(told).toEqual(['gone']);
  socket.emit('close');
  expect(failures).toEqual([
    [expect.objectContaining({ message: expect.stringContaining('ENHANCE_YOUR_CALM') }), true],
  ]);
});
