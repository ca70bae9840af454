import type { AskedRequest } from '../asked-request.ts';
import { type Message, statusOf } from '../message.ts';
import type { AppJudge, AppPeer } from '../peers.ts';
import { Violation } from '../violation.ts';
import type { Action } from '../walk.ts';
import type { PeerEnd } from '../world.ts';
import { Http1Reader } from './reader.ts';
import { message } from './writer.ts';

type Ask = Extract<Action, { do: 'app asks' }>;

/** One connection of an app that speaks HTTP/1.1. */
export class Http1AppPeer implements AppPeer {
  readonly cutsTogether = true;
  readonly asked: AskedRequest[] = [];
  /** How many have their answer. */
  answered = 0;
  /** The app has said its last word, or gone. */
  state: 'ended' | 'left' | 'open' = 'open';
  closedByProxy = false;
  /** It was said that the connection ends with an answer. */
  closing = false;
  /** How far the clocks had moved when it was last used. */
  usedMs = 0;
  paused = false;
  /** Has left a request unfinished for a while. */
  hasStopped = false;
  readonly #end: PeerEnd;
  readonly #judge: AppJudge;
  readonly #reader: Http1Reader;
  readonly #lastAsked = new Set<AskedRequest>();
  #unsent: { readonly asked: AskedRequest; readonly rest: Buffer } | undefined;

  constructor(end: PeerEnd, judge: AppJudge) {
    this.#end = end;
    this.#judge = judge;
    this.#reader = new Http1Reader('answers', {
      onHead: (answer) => this.#onHead(answer),
      onComplete: (answer) => this.#onComplete(answer),
    });
    end.onBytes = (bytes) => {
      try {
        if (this.state !== 'left') this.#reader.push(bytes);
      } catch (error) {
        judge.failed(error);
      }
    };
    end.onEnd = (how) => this.#onEnd(how);
  }

  get mayAsk(): boolean {
    if (this.state !== 'open' || this.closedByProxy || this.closing || this.#unsent !== undefined)
      return false;
    return this.#lastAsked.size === 0 && this.asked.length - this.answered < 4;
  }

  get isAmidst(): boolean {
    return this.state === 'open' && !this.closedByProxy && this.#unsent !== undefined;
  }

  get isOpen(): boolean {
    return this.state !== 'left' && !this.closedByProxy;
  }

  /** Those whose answer may still come. */
  get outstanding(): readonly AskedRequest[] {
    return this.isOpen ? this.asked.slice(this.answered) : [];
  }

  get nextAnswered(): readonly AskedRequest[] {
    return this.outstanding.slice(0, 1);
  }

  /** Those whose answer has to come: what is broken off by its app has none. */
  get due(): readonly AskedRequest[] {
    return this.outstanding.filter(({ whole }) => whole || this.state === 'open');
  }

  ask(asked: AskedRequest, { method, body, version, closes, stops }: Ask): void {
    this.asked.push(asked);
    if (version === '1.0' || closes) this.#lastAsked.add(asked);
    const head = [
      `${method} /r/${asked.id} HTTP/${version}`,
      'Host: app.example',
      ...(closes ? ['Connection: close'] : []),
    ];
    const sending = message(head, asked.body, body === 'none' ? 'none' : body, stops);
    if (sending.rest.length > 0) {
      this.#unsent = { asked, rest: sending.rest };
      this.hasStopped = true;
    } else {
      asked.whole = true;
    }
    this.#end.write(sending.first);
  }

  goOn(): void {
    const unsent = this.#unsent;
    if (unsent === undefined) return;
    this.#unsent = undefined;
    unsent.asked.whole = true;
    this.#end.write(unsent.rest);
  }

  end(): void {
    this.state = 'ended';
    this.#end.end();
  }

  leave(how: 'closes' | 'resets'): void {
    this.state = 'left';
    if (how === 'closes') this.#end.close();
    else this.#end.reset();
  }

  pause(): void {
    this.paused = true;
    this.#end.pause();
  }

  resume(): void {
    this.paused = false;
    this.#end.resume();
  }

  #onHead({ startLine }: Message): boolean {
    const asked = this.asked[this.answered];
    if (asked === undefined) throw new Violation(`an answer came that nobody had asked for: ${startLine}`);
    const status = statusOf(startLine);
    return asked.method !== 'HEAD' && status >= 200 && status !== 204 && status !== 304;
  }

  #onComplete(answer: Message): void {
    if (statusOf(answer.startLine) < 200) return;
    const asked = this.asked[this.answered] as AskedRequest;
    this.answered += 1;
    if (answer.fields.get('connection') === 'close' || this.#lastAsked.has(asked)) this.closing = true;
    this.#judge.answered(this, asked, answer);
  }

  #onEnd(how: 'ended' | 'reset'): void {
    if (this.state === 'left') return;
    if (how === 'ended') this.#reader.end();
    const { amidst } = this.#reader;
    // Those after it are lost with the connection.
    const [first] = this.outstanding;
    this.closedByProxy = true;
    this.#end.close();
    if (first !== undefined && (amidst || !this.closing)) this.#judge.cut(this, first, amidst, 'cut');
  }
}
