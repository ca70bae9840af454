import { type ProxyErrorCode, SidecarError } from '../../../platform/errors.ts';
import { type Fields, lowerCaseName } from '../../http/fields.ts';
import { MadeOf } from '../../http/lasting-fields.ts';
import { ByteQueue } from '../../io/byte-queue.ts';
import type { Delivery, OutgoingRequest } from '../../streams/contract.ts';
import { isSameRule, offersWebSocket, upstreamFields } from '../../streams/header-rules.ts';
import { isResponseDue, type StallTimeouts, stallTimeoutMs } from '../../streams/stall-timeouts.ts';
import type { Http2Connection } from './connection.ts';
import type { CarriedStream, UpstreamOutlet, WireStream } from './connection-writer.ts';

export type Failure = { readonly error: SidecarError<ProxyErrorCode>; readonly delivery: Delivery };

interface Held {
  /** Holds at most the stream's window. */
  readonly data: ByteQueue;
  end: { readonly trailers: Fields } | Failure | undefined;
}

export class CarriedRequest {
  readonly kind = 'busy';
  readonly connection: Http2Connection;
  readonly wire: WireStream;
  readonly reused: boolean;
  readonly isHead: boolean;
  readonly sending: RequestSending;
  readonly #stream: CarriedStream;
  readonly #timeouts: StallTimeouts;
  /** On the monotonic clock. */
  dueAtMs = Number.POSITIVE_INFINITY;
  /** Whether `onDrain` is due. */
  needDrain = false;
  /** Whether the system has taken some of the request. */
  left = false;
  anyResponse = false;
  answered = false;
  paused = false;
  held: Held | undefined;
  /** Octets not yet given back to the window. */
  #unreturned = 0;

  /** @param bodyBytes if they are known and no trailers can follow. */
  constructor(
    stream: CarriedStream,
    connection: Http2Connection,
    wire: WireStream,
    isHead: boolean,
    bodyBytes: number | undefined,
    timeouts: StallTimeouts,
  ) {
    this.#stream = stream;
    this.#timeouts = timeouts;
    this.connection = connection;
    this.wire = wire;
    this.reused = connection.reused;
    this.isHead = isHead;
    this.sending = new RequestSending(connection.outlet, wire, stream, bodyBytes);
  }

  /** Windows and socket have taken all that was written. */
  get keepsUp(): boolean {
    return this.sending.keepsUp && this.connection.outlet.takesMore;
  }

  requestSent(nowMs: number): void {
    if (this.held === undefined) this.#due(nowMs + stallTimeoutMs(this.#timeouts, true, this.answered));
  }

  /** Bytes have moved, or there was room for more. */
  touch(nowMs: number): void {
    // The user's delay is not the upstream's fault.
    const { whole } = this.sending;
    if (this.held !== undefined || isResponseDue(whole, this.answered)) return;
    this.#due(nowMs + stallTimeoutMs(this.#timeouts, whole, this.answered));
  }

  /** Says whether the upstream keeps up. */
  flush(): boolean {
    const { outlet } = this.connection;
    outlet.flushSoon();
    this.needDrain = !this.keepsUp;
    if (this.needDrain) outlet.wait(this.#stream);
    return !this.needDrain;
  }

  came(bytes: number): void {
    this.#unreturned += bytes;
    this.connection.outlet.came(bytes);
  }

  giveBack(): void {
    const bytes = this.#unreturned;
    if (bytes === 0) return;
    this.#unreturned = 0;
    this.connection.outlet.passedOn(this.wire, bytes);
  }

  holdResponse(): void {
    this.held = { data: new ByteQueue(), end: undefined };
    this.dueAtMs = Number.POSITIVE_INFINITY;
  }

  /** What has come stays held. */
  endHeld(held: Held, failure: Failure): void {
    held.end ??= failure;
    this.sending.stop();
    this.connection.outlet.waitNoMore(this.#stream);
  }

  leave(): void {
    this.dueAtMs = Number.POSITIVE_INFINITY;
    this.connection.outlet.reset(this.wire);
    this.giveBack();
    this.connection.release(this.#stream);
  }

  #due(atMs: number): void {
    this.dueAtMs = atMs;
    this.connection.due(atMs);
  }
}

/** Sends a body; what windows and socket do not take waits. */
class RequestSending {
  whole = false;
  readonly #outlet: UpstreamOutlet;
  readonly #wire: WireStream;
  readonly #stream: CarriedStream;
  readonly #waiting = new ByteQueue();
  /** Octets still to come, if no trailers can follow. */
  #remaining: number | undefined;
  #stopped = false;
  /** Undefined until they are known. */
  #trailers: readonly string[] | undefined;

  constructor(outlet: UpstreamOutlet, wire: WireStream, stream: CarriedStream, bytes: number | undefined) {
    this.#outlet = outlet;
    this.#wire = wire;
    this.#stream = stream;
    this.#remaining = bytes;
  }

  get keepsUp(): boolean {
    return this.#waiting.length === 0;
  }

  get heldBytes(): number {
    return this.#waiting.length;
  }

  /** The surplus waits: no more than the app sends before it heeds `UpstreamStream.flush`. */
  data(slice: Buffer): void {
    if (!this.#mayFollow) return;
    let rest = slice;
    while (rest.length > 0) {
      const sent = this.keepsUp ? this.#send(rest) : 0;
      if (sent === 0) {
        this.#waiting.add(rest);
        this.#outlet.wait(this.#stream);
        return;
      }
      rest = rest.subarray(sent);
    }
  }

  end(trailers: readonly string[]): void {
    this.#trailers = trailers;
  }

  stop(): void {
    this.#stopped = true;
    this.#waiting.clear();
  }

  sendOne(): 'nothing' | 'stuck' | 'sent' {
    if (!this.#mayFollow) this.stop();
    if (this.keepsUp) return 'nothing';
    const most = this.#outlet.sendable(this.#wire);
    if (most === 0) return 'stuck';
    this.#waiting.take(most, (octets) => this.#send(octets));
    return 'sent';
  }

  /** Says whether the request has just become whole. */
  finish(): boolean {
    if (this.whole || this.#trailers === undefined || !this.keepsUp) return false;
    this.whole = true;
    // With a known length, the last octet has ended it.
    if (this.#mayFollow) this.#outlet.end(this.#wire, this.#trailers);
    this.#outlet.flushSoon();
    return true;
  }

  get #mayFollow(): boolean {
    const { state } = this.#wire;
    return (
      !this.#stopped &&
      (state.kind === 'open' || (state.kind === 'half_closed' && state.endedBy === 'remote'))
    );
  }

  #send(bytes: Buffer): number {
    const last = this.#remaining !== undefined && this.#remaining <= bytes.length;
    const sent = this.#outlet.send(this.#wire, bytes, last);
    if (this.#remaining !== undefined) this.#remaining -= sent;
    return sent;
  }
}

/** HTTP/2 lacks these, or expresses them otherwise (RFC 9113 §8.2.2, §8.3.1). */
const LEFT_BEHIND: ReadonlySet<string> = new Set(['connection', 'host', 'transfer-encoding', 'upgrade']);

const SECTIONS = new MadeOf<{
  readonly request: OutgoingRequest;
  readonly scheme: 'http' | 'https';
  readonly section: Fields;
}>();

/**
 * @param scheme of the upstream.
 * @throws {SidecarError} `upstream_protocol_error` for a WebSocket, which needs HTTP/1.1.
 */
export function requestFields(request: OutgoingRequest, scheme: 'http' | 'https'): Fields {
  // A proof is for one request.
  if (request.proof !== undefined) return make(request, scheme);
  const { fields } = request.from;
  const known = SECTIONS.get(fields);
  if (known?.scheme === scheme && isSame(known.request, request)) return known.section;
  const section = make(request, scheme);
  SECTIONS.keep(fields, { request, scheme, section }, section);
  return section;
}

function isSame(one: OutgoingRequest, other: OutgoingRequest): boolean {
  return (
    isSameRule(one, other) &&
    one.from.method === other.from.method &&
    one.target === other.target &&
    one.hasBody === other.hasBody
  );
}

function make(request: OutgoingRequest, scheme: 'http' | 'https'): string[] {
  const { from, target, authority, hasBody, upgrade } = request;
  // For other protocols, clients must expect no switch (RFC 9110 §7.8).
  if (offersWebSocket(upgrade)) {
    throw new SidecarError(
      'upstream_protocol_error',
      `upstream ${authority} is spoken to in HTTP/2, by which no WebSocket is opened: give WebSockets a route with protocol: http1`,
    );
  }
  // Trailers may follow every body.
  const passed = upstreamFields(from, request, hasBody ? 'chunked' : 'plain');
  const fields = [':method', from.method, ':scheme', scheme, ':authority', authority, ':path', target];
  for (let at = 0; at < passed.length; at += 2) {
    const name = lowerCaseName(passed[at] as string);
    if (!LEFT_BEHIND.has(name)) fields.push(name, passed[at + 1] as string);
  }
  return fields;
}
