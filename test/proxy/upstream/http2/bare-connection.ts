import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { ProxyErrorCode, SidecarError } from '../../../../src/platform/errors.ts';
import type { Dialling } from '../../../../src/proxy/upstream/dialer.ts';
import { UpstreamFailures } from '../../../../src/proxy/upstream/failures.ts';
import { Http2Connection } from '../../../../src/proxy/upstream/http2/connection.ts';
import type { CarriedStream } from '../../../../src/proxy/upstream/http2/connection-writer.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { routeTo } from '../../../wire/sidecar.ts';

export const FIELDS = [':method', 'POST', ':scheme', 'http', ':authority', 'up.test', ':path', '/'];
export const SETTINGS = '000000040000000000';
/** 200 on stream 1, without an end. */
export const ANSWER = '00000101040000000188';
/** Ten octets more for the connection. */
export const WINDOW = '0000040800000000000000000a';

/** A socket whose system takes what is written only as the test says. */
export class BareSocket extends Duplex {
  bytesWritten = 0;
  /** What was written, one char an octet. */
  text = '';
  /** Whether the system takes nothing. */
  stuck = false;
  #taken: (() => void)[] = [];

  constructor() {
    super({ writableHighWaterMark: 16_384 });
  }

  override _read(): void {}

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    this.bytesWritten += bytes.length;
    this.text += bytes.toString('latin1');
    if (this.stuck) this.#taken.push(done);
    else done();
  }

  override _destroy(_error: Error | null, done: () => void): void {
    done();
  }

  /** As a socket of Node has it. */
  destroySoon(): void {
    this.end(() => this.destroy());
  }

  /** The system takes what waits. */
  unblock(): void {
    this.stuck = false;
    for (const done of this.#taken.splice(0)) done();
  }
}

/** A connection beneath which is no network. */
export function connect({ maxAgeMs = 1e9, assumedStreams = 100, connectMs = 10_000 } = {}) {
  const told: string[] = [];
  const free: number[] = [];
  const allowed: number[] = [];
  const socket = new BareSocket();
  const clock = new ManualClock();
  let read: ((chunk: Buffer) => void) | undefined;
  const dialling = {
    handTo(onBytes: (chunk: Buffer) => void) {
      read = onBytes;
      return socket as unknown as Socket;
    },
  } as unknown as Dialling;
  const connection = new Http2Connection(dialling, {
    route: routeTo({ address: { host: 'up.test', port: 80 } }, { timeouts: { connectMs } }),
    clock,
    failures: new UpstreamFailures('up.test'),
    maxAgeMs,
    assumedStreams,
    mayStandAside: () => true,
    onFree: () => void free.push(connection.free),
    onGone: () => told.push('gone'),
    onClosed: () => told.push('closed'),
    onAllowed: (streams) => void allowed.push(streams),
  });
  return {
    connection,
    socket,
    clock,
    told,
    /** How many requests it could carry each time that it said so. */
    free: () => free.splice(0),
    /** What the upstream has said to allow since this was last asked. */
    allowed: () => allowed.splice(0),
    bring: (hex: string) => read?.(Buffer.from(hex, 'hex')),
  };
}

/** Something carried, of which the test says what goes wrong in it. */
export function carried(wrong: Partial<CarriedStream> = {}) {
  const failures: [SidecarError<ProxyErrorCode>, boolean][] = [];
  const stream: CarriedStream = {
    place: 0,
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
