import type { Arrival, AskedRequest } from './asked-request.ts';
import type { Message } from './message.ts';
import type { Action } from './walk.ts';

type Of<Do extends Action['do']> = Extract<Action, { do: Do }>;

/** How the data path ended what it had not answered whole. */
export type Cut = 'cut' | 'refused';

export interface AppJudge {
  answered(app: AppPeer, asked: AskedRequest, answer: Message): void;
  /**
   * The data path has ended the connection or the stream without an answer to this one, or amid it; or it says that it
   * has not looked at it (RFC 9113 §8.7).
   */
  cut(app: AppPeer, asked: AskedRequest, amidst: boolean, how: Cut): void;
  /** What came is no answer. */
  failed(error: unknown): void;
}

/** One connection of an app, of whichever version of HTTP. */
export interface AppPeer {
  readonly asked: readonly AskedRequest[];
  /** The app has said its last word, or gone. */
  readonly state: 'ended' | 'left' | 'open';
  /** How far the clocks had moved when it was last used. */
  usedMs: number;
  readonly paused: boolean;
  /** Has left a request unfinished for a while. */
  readonly hasStopped: boolean;
  readonly mayAsk: boolean;
  /** Whether there is more of a request to be sent. */
  readonly isAmidst: boolean;
  readonly isOpen: boolean;
  /** Whether one request that is cut takes the others with it. */
  readonly cutsTogether: boolean;
  /** Those whose answer may still come. */
  readonly outstanding: readonly AskedRequest[];
  /** Of those, whose answers may come next. */
  readonly nextAnswered: readonly AskedRequest[];
  /** Those whose answer has to come: what is broken off by its app has none. */
  readonly due: readonly AskedRequest[];
  ask(asked: AskedRequest, action: Of<'app asks'>): void;
  goOn(): void;
  end(): void;
  leave(how: 'closes' | 'resets'): void;
  pause(): void;
  resume(): void;
  /** What only an app of HTTP/2 can do. */
  readonly streams?: AppStreams;
}

export interface AppStreams {
  /** Whether there is one that can be reset. */
  readonly any: boolean;
  /** Ends one of the streams that wait, by RST_STREAM with CANCEL, as a deadline of gRPC does. */
  reset(index: number): void;
  goaway(): void;
  /** Makes no room for more of the answers. */
  shutWindows(): void;
}

export interface UpstreamJudge {
  find(id: number): AskedRequest | undefined;
  arrived(arrival: Arrival): void;
  /** What came is no request. */
  failed(error: unknown): void;
}

/** One connection of the data path, at the upstream, of whichever version of HTTP. */
export interface UpstreamPeer {
  readonly id: number;
  /** `ended` reads on, `gone` does not. */
  readonly state: 'ended' | 'gone' | 'open';
  /** By the upstream, not by the data path. */
  readonly brokenOff: boolean;
  /** That it takes nothing more has come to the data path, or lies there to be read. */
  readonly endHasCome: boolean;
  readonly arrivals: readonly Arrival[];
  /** One that waits for its answer. */
  readonly waiting: Arrival | undefined;
  readonly isAmidstAnswer: boolean;
  readonly isIdle: boolean;
  /** Whether a request that leaves on it now leaves on one that has answered before. */
  readonly isUsed: boolean;
  /** Whether anything has been sent since the request came that is no part of an earlier answer. */
  hasSpokenFor(arrival: Arrival | undefined): boolean;
  /** Whether it has not said that it does not look at the stream (RFC 9113 §6.8). */
  looksAt(stream: number | undefined): boolean;
  /** A request has been written to it. */
  wasUsed(): void;
  /** All has happened that was under way. */
  settled(): void;
  answer(action: Of<'upstream answers'>): void;
  goOn(afterwards: Of<'upstream goes on'>['afterwards']): void;
  /** Answers in peace what is not answered. */
  finish(): void;
  inform(status: 100 | 103): void;
  /** Says what nobody asked for. */
  sayMore(): void;
  end(): void;
  reset(): void;
  pause(): void;
  resume(): void;
  /** What only an upstream of HTTP/2 can do. */
  readonly streams?: UpstreamStreams;
}

export interface UpstreamStreams {
  /** Whether there is one that can be reset. */
  readonly any: boolean;
  /** Those that are open though nobody waits for them. */
  readonly forsaken: readonly AskedRequest[];
  reset(index: number, code: Of<'upstream resets a stream'>['code']): void;
  /** @param unprocessed whether it has not looked at those that it has not answered. */
  goaway(unprocessed: boolean): void;
  shutWindows(): void;
  /** So many streams at once, from now on. */
  allow(streams: number): void;
}

/** What an upstream answers when the walk is over. */
export const IN_PEACE: Of<'upstream answers'> = {
  do: 'upstream answers',
  upstream: 0,
  status: 200,
  framing: 'length',
  bytes: 20,
  closes: false,
  keepAlive: undefined,
  stops: 'whole',
  afterwards: 'stays',
};
