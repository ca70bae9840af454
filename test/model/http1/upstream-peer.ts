import type { Arrival } from '../asked-request.ts';
import { bodyOf, idOf, type Message } from '../message.ts';
import { IN_PEACE, type UpstreamJudge, type UpstreamPeer } from '../peers.ts';
import { Violation } from '../violation.ts';
import type { Action, Afterwards, ResponseFraming } from '../walk.ts';
import type { PeerEnd } from '../world.ts';
import { Http1Reader } from './reader.ts';
import { message } from './writer.ts';

type Answer = Extract<Action, { do: 'upstream answers' }>;

/** One connection of the data path, at an upstream that speaks HTTP/1.1. */
export class Http1UpstreamPeer implements UpstreamPeer {
  readonly id: number;
  /** `ended` reads on, `gone` does not. */
  state: 'ended' | 'gone' | 'open' = 'open';
  /** By the upstream, not by the data path. */
  brokenOff = false;
  /** Its end has come to the data path, or lies there to be read. */
  endHasCome = false;
  isUsed = false;
  readonly arrivals: Arrival[] = [];
  readonly #end: PeerEnd;
  readonly #judge: UpstreamJudge;
  readonly #reader: Http1Reader;
  #answering: { readonly arrival: Arrival; readonly framing: ResponseFraming; rest: Buffer } | undefined;
  readonly #informed = new Set<Arrival>();
  /** Said something that nobody asked for. */
  #strayed = false;

  constructor(end: PeerEnd, judge: UpstreamJudge) {
    this.id = end.id;
    this.#end = end;
    this.#judge = judge;
    this.#reader = new Http1Reader('requests', {
      onHead: (request) => this.#onHead(request),
      onComplete: (request) => this.#onComplete(request),
    });
    end.onBytes = (bytes) => {
      if (this.state !== 'gone') this.#onBytes(bytes);
    };
    end.onEnd = () => {
      if (this.state === 'gone') return;
      this.state = 'gone';
      end.close();
    };
  }

  /** The first that waits for its answer. */
  get waiting(): Arrival | undefined {
    if (this.state !== 'open' || this.#answering !== undefined) return undefined;
    return this.arrivals.find(({ answer }) => answer === undefined);
  }

  get isAmidstAnswer(): boolean {
    return this.state === 'open' && this.#answering !== undefined;
  }

  get isIdle(): boolean {
    return (
      this.state === 'open' && this.waiting === undefined && !this.isAmidstAnswer && !this.#reader.amidst
    );
  }

  /** Whether anything has been sent since the request came that is no part of an earlier answer. */
  hasSpokenFor(arrival: Arrival | undefined): boolean {
    return (
      this.#strayed ||
      (arrival !== undefined && (arrival.answer !== undefined || this.#informed.has(arrival)))
    );
  }

  looksAt(): boolean {
    return true;
  }

  wasUsed(): void {
    this.isUsed = true;
  }

  settled(): void {
    this.endHasCome = this.brokenOff;
  }

  answer({ status, framing, bytes, closes, keepAlive, stops, afterwards }: Answer): void {
    const arrival = this.waiting;
    if (arrival === undefined) return;
    const isBodiless = status === 204 || status === 304;
    const body = isBodiless ? Buffer.alloc(0) : bodyOf(`answer ${arrival.name}`, bytes);
    arrival.answer = { status, body, complete: false, begun: true, refusesToken: status === 401 };
    const isHead = arrival.asked.method === 'HEAD';
    const head = [
      `HTTP/1.1 ${status} Modelled`,
      `X-For: ${arrival.name}`,
      ...(closes ? ['Connection: close'] : []),
      ...(keepAlive === undefined ? [] : [`Keep-Alive: timeout=${keepAlive}`]),
      ...(isHead && !isBodiless && framing === 'length' ? [`Content-Length: ${body.length}`] : []),
    ];
    const delimited = isBodiless || isHead ? 'none' : framing;
    const { first, rest } = message(head, body, delimited, stops);
    this.#end.write(first);
    this.#answering = { arrival, framing: delimited === 'close' ? 'close' : 'length', rest };
    this.#sent(rest, afterwards);
  }

  goOn(afterwards: Afterwards): void {
    const answering = this.#answering;
    if (answering === undefined) return;
    if (answering.rest.length > 0) this.#end.write(answering.rest);
    this.#sent(Buffer.alloc(0), afterwards);
  }

  /** Answers in peace what is not answered. */
  finish(): void {
    this.resume();
    if (this.#answering !== undefined) {
      this.goOn(this.#answering.framing === 'close' ? 'ends' : 'stays');
    } else if (this.waiting?.whole === true) {
      this.answer(IN_PEACE);
    }
  }

  inform(status: 100 | 103): void {
    if (this.waiting !== undefined) this.#informed.add(this.waiting);
    this.#end.write(Buffer.from(`HTTP/1.1 ${status} Modelled\r\n\r\n`));
  }

  sayMore(): void {
    this.#strayed = true;
    this.brokenOff = true;
    this.#breakOff();
    this.#end.write(Buffer.from('this is no answer\r\n\r\n'));
  }

  end(): void {
    this.brokenOff = true;
    const answering = this.#answering;
    const { answer } = answering?.arrival ?? {};
    if (
      answering?.framing === 'close' &&
      answer !== undefined &&
      answering.rest.length <= answer.body.length
    ) {
      answer.body = answer.body.subarray(0, answer.body.length - answering.rest.length);
      this.#answerEnded(answering.arrival);
    }
    this.#breakOff();
    this.state = 'ended';
    this.#end.end();
  }

  reset(): void {
    this.brokenOff = true;
    for (const arrival of this.arrivals) arrival.broken = true;
    this.state = 'gone';
    this.#end.reset();
  }

  pause(): void {
    this.#end.pause();
  }

  resume(): void {
    this.#end.resume();
  }

  #sent(rest: Buffer, afterwards: Afterwards): void {
    const answering = this.#answering;
    if (answering === undefined) return;
    answering.rest = rest;
    const { arrival, framing } = answering;
    if (rest.length === 0 && framing !== 'close') {
      this.#answerEnded(arrival);
    }
    if (afterwards === 'ends') this.end();
    if (afterwards === 'resets') this.reset();
  }

  #answerEnded({ answer }: Arrival): void {
    if (answer !== undefined) answer.complete = true;
    this.#answering = undefined;
  }

  #breakOff(): void {
    for (const arrival of this.arrivals) if (arrival.answer?.complete !== true) arrival.broken = true;
  }

  #onBytes(bytes: Buffer): void {
    try {
      this.#reader.push(bytes);
    } catch (error) {
      this.#judge.failed(error);
    }
  }

  #onHead({ startLine, fields }: Message): boolean {
    const asked = this.#judge.find(idOf(startLine));
    if (asked === undefined) throw new Violation(`a request came that nobody had asked: ${startLine}`);
    const arrival: Arrival = {
      asked,
      name: `${asked.id}.${asked.arrivals.length + 1}`,
      connection: this.id,
      stream: undefined,
      authorization: fields.get('authorization') ?? '',
      whole: false,
      answer: undefined,
      broken: this.state !== 'open' || this.#strayed,
      unprocessed: false,
      reset: false,
    };
    this.#judge.arrived(arrival);
    this.arrivals.push(arrival);
    asked.arrivals.push(arrival);
    return true;
  }

  #onComplete(request: Message): void {
    const arrival = this.arrivals.at(-1) as Arrival;
    arrival.whole = true;
    const body = Buffer.concat(request.body);
    if (!body.equals(arrival.asked.body)) {
      const at = body.findIndex((octet, index) => octet !== arrival.asked.body[index]);
      const what = `${body.length} bytes, of which number ${at} is the first that is wrong`;
      throw new Violation(`the body of ${arrival.asked} came as another: ${what}`);
    }
  }
}
