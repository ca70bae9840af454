import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { ProxyErrorCode, SidecarError } from '../../../../src/errors.ts';
import type { Dialling } from '../../../../src/proxy/upstream/dialling.ts';
import { UpstreamFailures } from '../../../../src/proxy/upstream/failures.ts';
import type { CarriedStream } from '../../../../src/proxy/upstream/http2/carried-stream.ts';
import { Http2Connection } from '../../../../src/proxy/upstream/http2/connection.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { routeTo } from '../../../wire/sidecar.ts';

const FIELDS = [':method', 'POST', ':scheme', 'http', ':authority', 'up.test', ':path', '/'];
const SETTINGS = '000000040000000000';
/** 200 on stream 1, without an end. */
const ANSWER = '00000101040000000188';
/** Ten octets more for the connection. */
const WINDOW = '0000040800000000000000000a';

/** A connection beneath which is no network. */
function connect() {
  const told: string[] = [];
  const socket = new Duplex({ read() {}, write: (_bytes, _encoding, done) => done() });
  let read: ((chunk: Buffer) => void) | undefined;
  const dialling = {
    handTo(onBytes: (chunk: Buffer) => void) {
      read = onBytes;
      return socket as unknown as Socket;
    },
  } as unknown as Dialling;
  const connection = new Http2Connection(dialling, {
    route: routeTo({ address: { host: 'up.test', port: 80 } }),
    clock: new ManualClock(),
    failures: new UpstreamFailures('up.test'),
    maxAgeMs: 1e9,
    assumedStreams: 100,
    onFree: () => {},
    onGone: () => told.push('gone'),
    onClosed: () => told.push('closed'),
    onAllowed: () => {},
  });
  return { connection, socket, told, bring: (hex: string) => read?.(Buffer.from(hex, 'hex')) };
}

/** Something carried, of which the test says what goes wrong in it. */
function carried(wrong: Partial<CarriedStream> = {}) {
  const failures: [SidecarError<ProxyErrorCode>, boolean][] = [];
  const stream: CarriedStream = {
    dueAtMs: Number.POSITIVE_INFINITY,
    hasLeft() {},
    answerCame() {},
    dataCame() {},
    trailersCame() {},
    pieceEnded() {},
    brokenOff() {},
    connectionFailed: (error, byPeer) => failures.push([error, byPeer]),
    sendWaiting: () => 'done',
    tooLate() {},
    ...wrong,
  };
  return { stream, failures };
}

function unforeseen(): never {
  throw new Error('unforeseen');
}

describe('what goes wrong inside fails the requests of the connection, and ends it', () => {
  it.each([
    ['an answer is passed on', { answerCame: unforeseen }, SETTINGS + ANSWER],
    ['all of a piece has been', { pieceEnded: unforeseen }, SETTINGS + ANSWER],
    ['a window opens', { sendWaiting: unforeseen }, SETTINGS + WINDOW],
  ])('as %s', (_, wrong, hex) => {
    const { connection, socket, told, bring } = connect();
    const [faulty, neighbour] = [carried(wrong), carried()];
    for (const { stream } of [faulty, neighbour]) {
      connection.lend(stream);
      connection.request(stream, FIELDS, 'ordinary', false);
    }
    connection.wait(faulty.stream);

    bring(hex);

    for (const { failures } of [faulty, neighbour])
      expect(failures).toEqual([[expect.objectContaining({ code: 'internal' }), false]]);
    expect([socket.destroyed, told]).toEqual([true, ['gone', 'closed']]);
  });

  it('as the socket takes more', () => {
    const { connection, socket } = connect();
    const { stream, failures } = carried({ sendWaiting: unforeseen });
    connection.lend(stream);
    connection.wait(stream);

    socket.emit('drain');

    expect(failures).toHaveLength(1);
    expect(socket.destroyed).toBe(true);
  });
});
