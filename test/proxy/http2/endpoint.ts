import { DEFAULT_ABUSE_LIMITS } from '../../../src/proxy/http2/abuse.ts';
import {
  ClientConnection,
  type ClientHandler,
  type ClientStream,
} from '../../../src/proxy/http2/client-connection.ts';
import type { ConnectionLimits, StreamHandler } from '../../../src/proxy/http2/connection-output.ts';
import type { ConnectionFault } from '../../../src/proxy/http2/errors.ts';
import {
  ServerConnection,
  type ServerHandler,
  type ServerStream,
} from '../../../src/proxy/http2/server-connection.ts';
import { PREFACE } from '../../../src/proxy/http2/settings.ts';
import type { Stream } from '../../../src/proxy/http2/streams.ts';
import { FRAME_LIMITS, readFrames } from './frames.ts';

export const LIMITS: ConnectionLimits = {
  frames: FRAME_LIMITS,
  section: { sectionBytes: 65_536, sectionFields: 200 },
  tableBytes: 4096,
  targetBytes: 8192,
  maxStreams: 100,
  streamWindowBytes: 65_535,
  connectionWindowBytes: 65_535,
  abuse: DEFAULT_ABUSE_LIMITS,
};

/** What a handler was told, in order. */
export type Told = readonly [event: string, streamId: number, ...details: unknown[]];

function telling<S extends Stream>(
  told: Told[],
  consume: (stream: S, bytes: number) => void,
): StreamHandler<S> {
  return {
    data(stream, data, endStream) {
      told.push(['data', stream.id, data.toString('latin1'), endStream]);
      consume(stream, data.length);
    },
    trailers: (stream, fields) => told.push(['trailers', stream.id, fields]),
    broken: (stream, how) => told.push(['broken', stream.id, how]),
    writable: (stream) => told.push(['writable', stream?.id ?? 0]),
    pong: (opaque) => told.push(['pong', 0, opaque.toString('latin1')]),
    goaway: ({ lastStreamId, code, debugData }) =>
      told.push(['goaway', lastStreamId, code, debugData.toString('latin1')]),
  };
}

/** A server's connection with what it says, as frames, and what it tells its handler. */
export class ServerEnd {
  readonly told: Told[] = [];
  readonly connection: ServerConnection<never>;
  fault: ConnectionFault | undefined;
  nowMs = 0;

  constructor(limits: Partial<ConnectionLimits> = {}, more: Partial<ServerHandler<never>> = {}) {
    this.connection = new ServerConnection(
      { ...LIMITS, ...limits },
      {
        ...telling<ServerStream<never>>(this.told, (stream, bytes) => this.connection.consume(stream, bytes)),
        request: (stream, { contentLength: _, ...request }, endStream) =>
          this.told.push(['request', stream.id, request, endStream]),
        refused: (stream, reason) => this.told.push(['refused', stream.id, reason]),
        malformed: () => {},
        ...more,
      },
    );
  }

  stream(streamId: number): ServerStream<never> {
    const stream = this.connection.stream(streamId);
    if (stream === undefined) throw new Error(`stream ${streamId} is not open`);
    return stream;
  }

  /** Gives it octets, and has what it says to them. */
  give(...octets: Buffer[]): object[] {
    this.fault = this.connection.receive(Buffer.concat(octets), this.nowMs);
    return this.said();
  }

  said(): object[] {
    return readFrames([this.connection.output.take()]);
  }

  /** As after a handshake. */
  static started(
    limits: Partial<ConnectionLimits> = {},
    more: Partial<ServerHandler<never>> = {},
  ): ServerEnd {
    const end = new ServerEnd(limits, more);
    end.connection.start();
    end.give(Buffer.from('000000040000000000', 'hex'));
    return end;
  }
}

/** The same of a client. */
export class ClientEnd {
  readonly told: Told[] = [];
  readonly connection: ClientConnection<never>;
  fault: ConnectionFault | undefined;

  constructor(limits: Partial<ConnectionLimits> = {}, more: Partial<ClientHandler<never>> = {}) {
    this.connection = new ClientConnection(
      { ...LIMITS, ...limits },
      {
        ...telling<ClientStream<never>>(this.told, (stream, bytes) => this.connection.consume(stream, bytes)),
        answer: (stream, { kind, status, fields }, endStream) =>
          this.told.push(['answer', stream.id, kind, status, fields, endStream]),
        mayOpen: () => this.told.push(['mayOpen', 0]),
        ...more,
      },
    );
  }

  give(...octets: Buffer[]): object[] {
    this.fault = this.connection.receive(Buffer.concat(octets), 0);
    return readFrames([this.connection.output.take()]);
  }

  static started(limits: Partial<ConnectionLimits> = {}): ClientEnd {
    const end = new ClientEnd(limits);
    end.connection.start();
    if (!end.connection.output.take().subarray(0, PREFACE.length).equals(PREFACE))
      throw new Error('no preface');
    end.give(Buffer.from('000000040000000000', 'hex'));
    return end;
  }
}
