import { Code, Flag, frame, Type } from '../../wire/http2/frames.ts';
import type { Arrival, AskedRequest } from '../asked-request.ts';
import { bodyOf, idOf } from '../message.ts';
import { IN_PEACE, type UpstreamJudge, type UpstreamPeer, type UpstreamStreams } from '../peers.ts';
import { Violation } from '../violation.ts';
import type { Action, Afterwards } from '../walk.ts';
import type { PeerEnd } from '../world.ts';
import { requestOf } from './frame-splitter.ts';
import { PeerConnection } from './peer-connection.ts';

type Answer = Extract<Action, { do: 'upstream answers' }>;

const CODES = { cancelled: Code.CANCEL, failed: Code.INTERNAL_ERROR, refused: Code.REFUSED_STREAM } as const;

const ENOUGH_STREAMS = 100;

interface Serving {
  readonly arrival: Arrival;
  readonly stream: number;
  readonly body: Buffer[];
  /** What is left to be said of the answer. */
  rest: (() => void) | undefined;
  informed: boolean;
  /** Nothing more comes of it, or will be said. */
  over: boolean;
}

/** One connection of the data path, at an upstream that speaks HTTP/2. */
export class Http2UpstreamPeer implements UpstreamPeer {
  readonly id: number;
  state: 'ended' | 'gone' | 'open' = 'open';
  brokenOff = false;
  endHasCome = false;
  isUsed = false;
  readonly arrivals: Arrival[] = [];
  readonly streams: UpstreamStreams;
  readonly #end: PeerEnd;
  readonly #judge: UpstreamJudge;
  readonly #connection: PeerConnection;
  readonly #serving = new Map<number, Serving>();
  /** The last stream that is looked at. */
  #last = Number.POSITIVE_INFINITY;
  #strayed = false;

  constructor(end: PeerEnd, judge: UpstreamJudge) {
    this.id = end.id;
    this.#end = end;
    this.#judge = judge;
    this.#connection = new PeerConnection(end, 'upstream', {
      fields: (stream, fields, ends) => this.#onFields(stream, fields, ends),
      data: (stream, data, ends) => this.#onData(stream, data, ends),
      reset: (stream) => this.#onReset(stream),
      goaway: (_last, code) => {
        if (code !== Code.NO_ERROR && !this.#strayed) {
          throw new Violation(`a connection to the upstream was ended with the code ${code}`);
        }
      },
      said: (stream) => this.#said(stream),
    });
    end.onBytes = (bytes) => {
      if (this.state !== 'gone') this.#onBytes(bytes);
    };
    end.onEnd = () => {
      if (this.state === 'gone') return;
      this.state = 'gone';
      this.#connection.ended = true;
      end.close();
    };
    this.streams = new StreamActions(this.#connection, {
      running: () => (this.state === 'open' ? this.#running : []),
      askedOn: (stream) => (this.state === 'open' ? this.#serving.get(stream)?.arrival.asked : undefined),
      resets: (serving, refuses) => this.#resets(serving, refuses),
      leaves: (unprocessed) => this.#leaves(unprocessed),
    });
  }

  get waiting(): Arrival | undefined {
    return this.#waiting[0]?.arrival;
  }

  get isAmidstAnswer(): boolean {
    return this.state === 'open' && this.#running.some(({ rest }) => rest !== undefined);
  }

  get isIdle(): boolean {
    return this.state === 'open' && this.#running.length === 0;
  }

  hasSpokenFor(arrival: Arrival | undefined): boolean {
    if (this.#strayed) return true;
    if (arrival === undefined) return false;
    return arrival.answer !== undefined || this.#servingOf(arrival)?.informed === true;
  }

  looksAt(stream: number | undefined): boolean {
    return (stream ?? 0) <= this.#last;
  }

  /** What counts is whether an answer has come on it. */
  wasUsed(): void {}

  settled(): void {
    this.endHasCome = this.brokenOff || Number.isFinite(this.#last);
    this.isUsed ||= this.arrivals.some(({ answer }) => answer?.begun === true);
  }

  answer(action: Answer): void {
    const waiting = this.#waiting;
    const serving = waiting[action.upstream % Math.max(1, waiting.length)];
    if (serving !== undefined) this.#answer(serving, action);
  }

  goOn(afterwards: Afterwards): void {
    const serving = this.#running.find(({ rest }) => rest !== undefined);
    const rest = serving?.rest;
    if (serving === undefined || rest === undefined) return;
    serving.rest = undefined;
    rest();
    this.#then(afterwards);
  }

  finish(): void {
    this.resume();
    if (this.state !== 'open') return;
    if (this.#connection.allows < ENOUGH_STREAMS) this.streams.allow(ENOUGH_STREAMS);
    while (this.isAmidstAnswer) this.goOn('stays');
    for (const serving of this.#waiting) if (serving.arrival.whole) this.#answer(serving, IN_PEACE);
  }

  inform(status: 100 | 103): void {
    const [serving] = this.#waiting;
    if (serving === undefined) return;
    serving.informed = true;
    this.#connection.fields(serving.stream, [':status', String(status)], false);
  }

  sayMore(): void {
    this.#strayed = true;
    this.brokenOff = true;
    this.#breakOff();
    // SETTINGS belong to no stream (RFC 9113 §6.5).
    this.#connection.stray(frame(Type.SETTINGS, Flag.NONE, 1));
  }

  end(): void {
    this.brokenOff = true;
    this.#breakOff();
    this.state = 'ended';
    this.#connection.end();
  }

  reset(): void {
    this.brokenOff = true;
    for (const arrival of this.arrivals) arrival.broken = true;
    this.state = 'gone';
    this.#connection.ended = true;
    this.#end.reset();
  }

  pause(): void {
    this.#end.pause();
  }

  resume(): void {
    this.#connection.openWindows();
    this.#end.resume();
  }

  get #running(): Serving[] {
    return [...this.#serving.values()].filter(({ over }) => !over);
  }

  get #waiting(): Serving[] {
    if (this.state !== 'open' || this.#connection.holds) return [];
    return this.#running.filter(({ arrival }) => arrival.answer === undefined);
  }

  #servingOf(arrival: Arrival): Serving | undefined {
    return this.#serving.get(arrival.stream ?? 0);
  }

  #answer(serving: Serving, action: Answer): void {
    const { arrival, stream } = serving;
    const { asked } = arrival;
    const refusesToken = action.status === 401;
    const trailersOnly = asked.grpc && refusesToken && action.framing !== 'length';
    const status = asked.grpc && (!refusesToken || trailersOnly) ? 200 : action.status;
    const isEmpty = status === 204 || status === 304 || trailersOnly;
    const body = isEmpty ? Buffer.alloc(0) : bodyOf(`answer ${arrival.name}`, action.bytes);
    const sent = { status, body, complete: false, begun: false, refusesToken };
    arrival.answer = sent;
    const fields = [':status', String(status), 'x-for', arrival.name];
    if (asked.grpc) fields.push('content-type', 'application/grpc');
    if (trailersOnly) fields.push('grpc-status', '16');
    if (!isEmpty && !asked.grpc && action.framing === 'length') {
      fields.push('content-length', String(body.length));
    }
    // To an app of HTTP/1.1 no more is missing where the length is said.
    const isWhole = body.length === 0 && action.framing === 'length' && !asked.grpc;
    const ends = isEmpty || isWhole || asked.method === 'HEAD';
    this.#connection.fields(stream, fields, ends, {
      half: action.stops === 'in the head',
      written: () => {
        sent.begun = true;
      },
    });
    const half = action.stops === 'in the body' && !ends ? Math.floor(body.length / 2) : 0;
    const sayRest = (): void => {
      this.#connection.goOn();
      if (ends) return;
      this.#connection.data(stream, body.subarray(half), !asked.grpc);
      if (asked.grpc) this.#connection.fields(stream, ['grpc-status', '0'], true);
    };
    if (action.stops === 'whole' || (ends && !this.#connection.holds)) sayRest();
    else {
      if (half > 0) this.#connection.data(stream, body.subarray(0, half), false);
      serving.rest = sayRest;
    }
    this.#then(action.afterwards);
  }

  #then(afterwards: Afterwards): void {
    if (afterwards === 'ends') this.end();
    if (afterwards === 'resets') this.reset();
  }

  #said(stream: number): void {
    const serving = this.#serving.get(stream);
    if (serving?.arrival.answer === undefined) return;
    serving.arrival.answer.complete = true;
    serving.over = true;
  }

  #resets(serving: Serving, refuses: boolean): void {
    const { arrival } = serving;
    serving.over = true;
    arrival.broken = true;
    arrival.reset = true;
    arrival.unprocessed = refuses && arrival.answer === undefined && !serving.informed;
  }

  /** @returns the last stream that is looked at. */
  #leaves(unprocessed: boolean): number {
    const served = [...this.#serving.values()].filter(
      ({ arrival }) => !unprocessed || this.hasSpokenFor(arrival),
    );
    this.#last = Math.min(this.#last, Math.max(0, ...served.map(({ stream }) => stream)));
    for (const serving of this.#serving.values()) this.#forsake(serving);
    return this.#last;
  }

  #forsake(serving: Serving): void {
    if (serving.stream <= this.#last || serving.over) return;
    this.#resets(serving, true);
  }

  #breakOff(): void {
    for (const arrival of this.arrivals) if (arrival.answer?.complete !== true) arrival.broken = true;
  }

  #onBytes(bytes: Buffer): void {
    try {
      this.#connection.push(bytes);
    } catch (error) {
      this.#judge.failed(error);
    }
  }

  #onFields(stream: number, fields: ReadonlyMap<string, string>, ends: boolean): void {
    const known = this.#serving.get(stream);
    if (known !== undefined)
      throw new Violation(`${known.arrival.asked} came with trailers that nobody sent`);
    const { startLine } = requestOf(fields);
    const asked = this.#judge.find(idOf(startLine));
    if (asked === undefined) throw new Violation(`a request came that nobody had asked: ${startLine}`);
    const arrival: Arrival = {
      asked,
      name: `${asked.id}.${asked.arrivals.length + 1}`,
      connection: this.id,
      stream,
      authorization: fields.get('authorization') ?? '',
      whole: false,
      answer: undefined,
      broken: this.state !== 'open' || this.#strayed,
      unprocessed: false,
      reset: false,
    };
    const serving: Serving = { arrival, stream, body: [], rest: undefined, informed: false, over: false };
    // What left before the data path could know is not looked at.
    if (stream <= this.#last) this.#judge.arrived(arrival);
    this.arrivals.push(arrival);
    asked.arrivals.push(arrival);
    this.#serving.set(stream, serving);
    this.#forsake(serving);
    if (ends) this.#cameWhole(serving);
  }

  #onData(stream: number, data: Buffer, ends: boolean): void {
    const serving = this.#serving.get(stream);
    if (serving === undefined) return;
    serving.body.push(Buffer.from(data));
    if (ends) this.#cameWhole(serving);
  }

  #cameWhole({ arrival, body }: Serving): void {
    arrival.whole = true;
    const came = Buffer.concat(body);
    if (!came.equals(arrival.asked.body)) {
      throw new Violation(`the body of ${arrival.asked} came as another, of ${came.length} bytes`);
    }
  }

  #onReset(stream: number): void {
    const serving = this.#serving.get(stream);
    if (serving === undefined) return;
    serving.over = true;
    // Nobody wants the rest of it.
    serving.rest = undefined;
    this.#connection.goOn();
  }
}

interface Upstream {
  running(): readonly Serving[];
  askedOn(stream: number): AskedRequest | undefined;
  resets(serving: Serving, refuses: boolean): void;
  leaves(unprocessed: boolean): number;
}

/** What an upstream of HTTP/2 does beside answering. */
class StreamActions implements UpstreamStreams {
  readonly #connection: PeerConnection;
  readonly #upstream: Upstream;

  constructor(connection: PeerConnection, upstream: Upstream) {
    this.#connection = connection;
    this.#upstream = upstream;
  }

  get any(): boolean {
    return this.#upstream.running().length > 0;
  }

  get forsaken(): readonly AskedRequest[] {
    const open = this.#connection.open.flatMap((stream) => this.#upstream.askedOn(stream) ?? []);
    return open.filter(({ over }) => over);
  }

  reset(index: number, code: keyof typeof CODES): void {
    const running = this.#upstream.running();
    const serving = running[index % running.length];
    if (serving === undefined) return;
    this.#connection.goOn();
    this.#upstream.resets(serving, code === 'refused');
    this.#connection.reset(serving.stream, CODES[code]);
  }

  goaway(unprocessed: boolean): void {
    this.#connection.goaway(this.#upstream.leaves(unprocessed), Code.NO_ERROR);
  }

  shutWindows(): void {
    this.#connection.shutWindows();
  }

  allow(streams: number): void {
    this.#connection.allow(streams);
  }
}
