import { Code } from '../../wire/http2/frames.ts';
import type { AskedRequest } from '../asked-request.ts';
import { type Message, statusOf } from '../message.ts';
import type { AppJudge, AppPeer, AppStreams, Cut } from '../peers.ts';
import { Violation } from '../violation.ts';
import type { Action } from '../walk.ts';
import type { PeerEnd } from '../world.ts';
import { PeerConnection } from './peer-connection.ts';

type Ask = Extract<Action, { do: 'app asks' }>;

const MAX_CONCURRENT = 5;

interface Asking {
  readonly asked: AskedRequest;
  readonly stream: number;
  answer: Message | undefined;
  /** What is left to be said of the request. */
  rest: (() => void) | undefined;
  over: boolean;
}

/** One connection of an app that speaks HTTP/2 with prior knowledge: several requests at once, each in a stream. */
export class Http2AppPeer implements AppPeer {
  readonly asked: AskedRequest[] = [];
  readonly cutsTogether = false;
  state: 'ended' | 'left' | 'open' = 'open';
  usedMs = 0;
  paused = false;
  hasStopped = false;
  readonly streams: AppStreams;
  readonly #end: PeerEnd;
  readonly #judge: AppJudge;
  readonly #connection: PeerConnection;
  readonly #asking: Asking[] = [];
  #closedByProxy = false;
  #goingAway = false;
  #shut = false;

  constructor(end: PeerEnd, judge: AppJudge) {
    this.#end = end;
    this.#judge = judge;
    this.#connection = new PeerConnection(end, 'app', {
      fields: (stream, fields, ends) => this.#onFields(this.#askedOn(stream), fields, ends),
      data: (stream, data, ends) => this.#onData(this.#askedOn(stream), data, ends),
      reset: (stream, code) => this.#onReset(this.#askedOn(stream), code),
      goaway: (last, code) => this.#onGoaway(last, code),
      said: (stream) => {
        this.#askedOn(stream).asked.whole = true;
      },
    });
    end.onBytes = (bytes) => {
      try {
        if (this.state !== 'left') this.#connection.push(bytes);
      } catch (error) {
        judge.failed(error);
      }
    };
    end.onEnd = () => this.#onEnd();
    this.streams = this.#actions();
  }

  get mayAsk(): boolean {
    if (this.state !== 'open' || this.#closedByProxy || this.#goingAway || this.#connection.holds)
      return false;
    return this.#running.length < MAX_CONCURRENT;
  }

  get isAmidst(): boolean {
    return this.state === 'open' && !this.#closedByProxy && this.#running.some(({ rest }) => rest);
  }

  get isOpen(): boolean {
    return this.state !== 'left' && !this.#closedByProxy;
  }

  get outstanding(): readonly AskedRequest[] {
    return this.isOpen ? this.#running.map(({ asked }) => asked) : [];
  }

  get nextAnswered(): readonly AskedRequest[] {
    return this.#shut ? [] : this.outstanding;
  }

  get due(): readonly AskedRequest[] {
    return this.outstanding.filter(({ whole }) => whole || this.state === 'open');
  }

  ask(asked: AskedRequest, { method, body, grpc, stops }: Ask): void {
    const stream = 2 * this.asked.length + 1;
    this.asked.push(asked);
    const asking: Asking = { asked, stream, answer: undefined, rest: undefined, over: false };
    this.#asking.push(asking);
    const fields = [
      ':method',
      method,
      ':scheme',
      'http',
      ':authority',
      'app.example',
      ':path',
      `/r/${asked.id}`,
    ];
    if (grpc) fields.push('content-type', 'application/grpc', 'te', 'trailers');
    else if (body === 'length') fields.push('content-length', String(asked.body.length));
    const ends = body === 'none';
    this.#connection.fields(stream, fields, ends, { half: stops === 'in the head' });
    const half = stops === 'in the body' ? Math.floor(asked.body.length / 2) : 0;
    const sendRest = (): void => {
      this.#connection.goOn();
      if (!ends) this.#connection.data(stream, asked.body.subarray(half), true);
    };
    if (stops === 'whole' || (ends && !this.#connection.holds)) {
      sendRest();
      return;
    }
    if (half > 0) this.#connection.data(stream, asked.body.subarray(0, half), false);
    this.hasStopped = true;
    asking.rest = sendRest;
  }

  goOn(): void {
    const asking = this.#running.find(({ rest }) => rest !== undefined);
    const rest = asking?.rest;
    if (asking === undefined || rest === undefined) return;
    asking.rest = undefined;
    rest();
  }

  end(): void {
    this.#connection.openForGood();
    this.state = 'ended';
    this.#connection.end();
  }

  leave(how: 'closes' | 'resets'): void {
    this.state = 'left';
    this.#connection.ended = true;
    if (how === 'closes') this.#end.close();
    else this.#end.reset();
  }

  pause(): void {
    this.paused = true;
    this.#end.pause();
  }

  resume(): void {
    this.paused = false;
    this.#shut = false;
    this.#connection.openWindows();
    this.#end.resume();
  }

  #actions(): AppStreams {
    const isAny = (): boolean => this.#running.length > 0;
    return {
      get any() {
        return isAny();
      },
      reset: (index) => {
        const running = this.#running;
        const asking = running[index % running.length];
        if (asking === undefined) return;
        this.#connection.goOn();
        asking.over = true;
        asking.asked.over = true;
        this.#connection.reset(asking.stream, Code.CANCEL);
      },
      goaway: () => {
        this.#goingAway = true;
        this.#connection.goaway(0, Code.NO_ERROR);
      },
      shutWindows: () => {
        this.#shut = true;
        this.#connection.shutWindows();
      },
    };
  }

  get #running(): Asking[] {
    return this.#asking.filter(({ over }) => !over);
  }

  #askedOn(stream: number): Asking {
    return this.#asking[(stream - 1) / 2] as Asking;
  }

  #onFields(asking: Asking, fields: ReadonlyMap<string, string>, ends: boolean): void {
    if (asking.over) return;
    const { answer } = asking;
    if (answer === undefined) {
      const startLine = `HTTP/2.0 ${fields.get(':status')} `;
      if (statusOf(startLine) < 200) {
        if (ends) throw new Violation(`${asking.asked} got an answer that is not final, and no other`);
        return;
      }
      asking.answer = { startLine, fields, body: [], bodyBytes: 0 };
    } else {
      if (!ends) throw new Violation(`${asking.asked} got two heads`);
      asking.answer = { ...answer, fields: new Map([...answer.fields, ...fields]) };
    }
    if (ends) this.#complete(asking);
  }

  #onData(asking: Asking, data: Buffer, ends: boolean): void {
    if (asking.over) return;
    const { answer } = asking;
    if (answer === undefined) throw new Violation(`${asking.asked} got a body without a head`);
    if (data.length > 0) answer.body.push(Buffer.from(data));
    answer.bodyBytes += data.length;
    if (ends) this.#complete(asking);
  }

  #complete(asking: Asking): void {
    asking.over = true;
    this.#judge.answered(this, asking.asked, asking.answer as Message);
  }

  #onReset(asking: Asking, code: number): void {
    this.#cut(asking, code === Code.REFUSED_STREAM ? 'refused' : 'cut');
  }

  #onGoaway(last: number, code: number): void {
    if (code !== Code.NO_ERROR) throw new Violation(`a connection was ended with the code ${code}`);
    this.#goingAway = true;
    for (const asking of this.#running) if (asking.stream > last) this.#cut(asking, 'refused');
  }

  #onEnd(): void {
    if (this.state === 'left') return;
    const running = this.#running;
    this.#closedByProxy = true;
    this.#connection.ended = true;
    this.#end.close();
    for (const asking of running) this.#cut(asking, 'cut');
  }

  #cut(asking: Asking, how: Cut): void {
    if (asking.over) return;
    asking.over = true;
    this.#judge.cut(this, asking.asked, asking.answer !== undefined, how);
  }
}
