import type { DataPath } from '../../src/proxy/data-path.ts';
import { AskedRequest } from './asked-request.ts';
import { Http1AppPeer } from './http1/app-peer.ts';
import { Http1Reader } from './http1/reader.ts';
import { Http1UpstreamPeer } from './http1/upstream-peer.ts';
import { Http2AppPeer } from './http2/app-peer.ts';
import { Http2RequestReader } from './http2/request-reader.ts';
import { Http2UpstreamPeer } from './http2/upstream-peer.ts';
import { Judge, type Scene } from './judge.ts';
import type { ModelBearer } from './model-bearer.ts';
import type { AppJudge, AppPeer, UpstreamJudge, UpstreamPeer } from './peers.ts';
import type { Action, Walk } from './walk.ts';
import type { PeerEnd, World } from './world.ts';

const MAX_APPS = 4;

/** Both sides of the data path, everything that they said to each other, and whether that was right. */
export class Model implements Scene {
  readonly apps: AppPeer[] = [];
  readonly upstreams: UpstreamPeer[] = [];
  readonly requests: AskedRequest[] = [];
  readonly bearer: ModelBearer;
  readonly trace: (line: string) => void;
  /** The first thing that was wrong. */
  violation: Error | undefined;
  movedMs = 0;
  draining = false;
  readonly #world: World;
  readonly versions: Pick<Walk, 'app' | 'upstream'>;
  readonly #address: DataPath['address'];
  readonly #judge: Judge;
  /** How often an upstream has broken something off since all had happened that was under way. */
  #unnoticed = 0;
  /** Reads what the data path writes to each upstream connection, while it lives. */
  readonly #written = new Map<number, { push(bytes: Buffer): void }>();

  constructor(
    versions: Pick<Walk, 'app' | 'upstream'>,
    world: World,
    bearer: ModelBearer,
    address: DataPath['address'],
    trace: (line: string) => void,
  ) {
    this.trace = trace;
    this.bearer = bearer;
    this.versions = versions;
    this.#world = world;
    this.#address = address;
    this.#judge = new Judge(this);
    world.onTurn = () => bearer.turnEnded();
    world.onUpstream = (end) => this.#connected(end);
    world.onWritten = ({ connection, bytes, alive }) => {
      if (alive) this.#guard(() => this.#readerOf(connection).push(bytes));
    };
  }

  /** Whether a request waits for its answer that may still come. */
  get outstanding(): readonly AskedRequest[] {
    return this.apps.flatMap(({ outstanding }) => outstanding);
  }

  /** @returns false for a step that nobody can take now. */
  act(action: Action): boolean {
    if ('app' in action) return this.#actApp(action);
    if ('upstream' in action) {
      const acted = this.#actUpstream(action);
      if (acted && breaksOff(action)) {
        this.#unnoticed += 1;
        for (const asked of this.outstanding) asked.disturbances += 1;
      }
      return acted;
    }
    switch (action.do) {
      case 'app opens':
        if (this.apps.filter(({ isOpen }) => isOpen).length >= MAX_APPS) return false;
        this.apps.push(this.#openApp());
        return true;
      case 'connections':
        this.#world.connecting = action.are;
        this.#noteRefusals();
        return true;
      case 'token ends':
        this.bearer.end();
        return true;
      case 'token is granted':
        this.bearer.grant(action.lifetimeMs);
        return true;
      case 'token is refused':
        for (const asked of this.outstanding) asked.tokenRefused = true;
        this.bearer.refuse();
        return true;
      default:
        throw new Error(`${action.do} is not for the peers`);
    }
  }

  /** Says that the clocks have moved. */
  moved(ms: number): void {
    this.movedMs += ms;
  }

  /** Says that all has happened that was under way. */
  settled(): void {
    this.#unnoticed = 0;
    for (const upstream of this.upstreams) upstream.settled();
    for (const asked of this.outstanding) asked.mayBeAnsweredAtMs = undefined;
  }

  /** The clocks are about to jump: answers that are on their way by then are no later for it. */
  beforeJump(): void {
    for (const app of this.apps) {
      for (const asked of app.nextAnswered) {
        asked.mayBeAnsweredAtMs ??= this.movedMs;
        const answer = asked.lastArrival?.answer;
        if (answer === undefined || !asked.whole) continue;
        const small = answer.body.length < 16_000;
        if (answer.complete && !answer.refusesToken && small && !app.paused && !this.#judge.isLate(asked)) {
          asked.answeredInTime = true;
        }
      }
    }
  }

  #actApp(action: Extract<Action, { app: number }>): boolean {
    const act = (fits: (app: AppPeer) => boolean, how: (app: AppPeer) => void): boolean =>
      pickAndAct(this.apps, action.app, fits, how);
    const isOpen = (app: AppPeer): boolean => app.isOpen;
    switch (action.do) {
      case 'app asks':
        return act(
          ({ mayAsk }) => mayAsk,
          (app) => app.ask(this.#request(action, app), action),
        );
      case 'app goes on':
        return act(
          ({ isAmidst }) => isAmidst,
          (app) => app.goOn(),
        );
      case 'app ends':
        return act(
          ({ state, isOpen: open }) => open && state === 'open',
          (app) => app.end(),
        );
      case 'app leaves':
        return act(isOpen, (app) => app.leave(action.how));
      case 'app stops reading':
        return act(isOpen, (app) => app.pause());
      case 'app reads on':
        return act(isOpen, (app) => app.resume());
      case 'app resets a stream':
        return act(
          ({ state, isOpen: open, streams }) => open && state === 'open' && streams?.any === true,
          ({ streams }) => streams?.reset(action.app),
        );
      case 'app says goodbye':
        return act(
          ({ state, isOpen: open, streams }) => open && state === 'open' && streams !== undefined,
          ({ streams }) => streams?.goaway(),
        );
      case 'app shuts its windows':
        return act(
          ({ state, isOpen: open, streams }) => open && state === 'open' && streams !== undefined,
          ({ streams }) => streams?.shutWindows(),
        );
    }
  }

  #actUpstream(action: Extract<Action, { upstream: number }>): boolean {
    const act = (fits: (upstream: UpstreamPeer) => boolean, how: (upstream: UpstreamPeer) => void): boolean =>
      pickAndAct(this.upstreams, action.upstream, fits, how);
    const isOpen = ({ state }: UpstreamPeer): boolean => state === 'open';
    const hasStreams = ({ state, streams }: UpstreamPeer): boolean =>
      state === 'open' && streams !== undefined;
    switch (action.do) {
      case 'upstream answers':
        return act(
          ({ waiting }) => waiting !== undefined,
          (upstream) => upstream.answer(action),
        );
      case 'upstream goes on':
        return act(
          ({ isAmidstAnswer }) => isAmidstAnswer,
          (upstream) => upstream.goOn(action.afterwards),
        );
      case 'upstream informs':
        return act(
          ({ waiting }) => waiting !== undefined,
          (upstream) => upstream.inform(action.status),
        );
      case 'upstream says more':
        return act(
          ({ isIdle }) => isIdle,
          (upstream) => upstream.sayMore(),
        );
      case 'upstream ends':
        return act(isOpenAnd(action.idle), (upstream) => upstream.end());
      case 'upstream resets':
        return act(isOpenAnd(action.idle), (upstream) => upstream.reset());
      case 'upstream stops reading':
        return act(isOpen, (upstream) => upstream.pause());
      case 'upstream reads on':
        return act(isOpen, (upstream) => upstream.resume());
      case 'upstream resets a stream':
        return act(
          ({ state, streams }) => state === 'open' && streams?.any === true,
          ({ streams }) => streams?.reset(action.upstream, action.code),
        );
      case 'upstream says goodbye':
        return act(hasStreams, ({ streams }) => streams?.goaway(action.unprocessed));
      case 'upstream shuts its windows':
        return act(hasStreams, ({ streams }) => streams?.shutWindows());
      case 'upstream allows':
        return act(hasStreams, ({ streams }) => streams?.allow(action.streams));
    }
  }

  #openApp(): AppPeer {
    const end = this.#world.connectApp(this.#address);
    const judge: AppJudge = {
      answered: (by, asked, answer) =>
        this.#guard(() => {
          // The data path may have written it before the jump: its connection has been idle since then.
          asked.over = true;
          by.usedMs = asked.mayBeAnsweredAtMs ?? this.movedMs;
          this.#judge.answer(asked, answer);
        }),
      cut: (by, asked, amidst, how) => {
        asked.over = true;
        this.#guard(() => this.#judge.cut(by, asked, amidst, how));
      },
      failed: (error) => this.#fail(error),
    };
    const app = this.versions.app === 'h2' ? new Http2AppPeer(end, judge) : new Http1AppPeer(end, judge);
    app.usedMs = this.movedMs;
    return app;
  }

  #request(action: Extract<Action, { do: 'app asks' }>, app: AppPeer): AskedRequest {
    const asked = new AskedRequest(this.requests.length + 1, action, app.usedMs);
    this.requests.push(asked);
    asked.disturbances = this.#unnoticed;
    asked.connectionsRefused = this.#world.connecting === 'refused';
    return asked;
  }

  #noteRefusals(): void {
    if (this.#world.connecting !== 'refused') return;
    for (const asked of this.outstanding) asked.connectionsRefused = true;
  }

  #connected(end: PeerEnd): void {
    const judge: UpstreamJudge = {
      find: (id) => this.requests[id - 1],
      arrived: (arrival) => this.#judge.arrival(arrival),
      failed: (error) => this.#fail(error),
    };
    const speaksHttp2 = this.versions.upstream === 'h2';
    this.upstreams.push(speaksHttp2 ? new Http2UpstreamPeer(end, judge) : new Http1UpstreamPeer(end, judge));
  }

  #readerOf(connection: number): { push(bytes: Buffer): void } {
    const known = this.#written.get(connection);
    if (known !== undefined) return known;
    const reader =
      this.versions.upstream === 'h2'
        ? new Http2RequestReader((message, stream) => this.#judge.departure(connection, message, stream))
        : new Http1Reader('requests', {
            onHead: (message) => {
              this.#judge.departure(connection, message, undefined);
              return true;
            },
            onComplete: () => {},
          });
    this.#written.set(connection, reader);
    return reader;
  }

  #guard(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    this.violation ??= error instanceof Error ? error : new Error(String(error));
  }
}

function breaksOff(action: Action): boolean {
  switch (action.do) {
    case 'upstream ends':
    case 'upstream resets':
    case 'upstream resets a stream':
    case 'upstream says goodbye':
    case 'upstream says more':
      return true;
    case 'upstream answers':
    case 'upstream goes on':
      return action.afterwards !== 'stays';
    default:
      return false;
  }
}

function isOpenAnd(idle: boolean): (upstream: UpstreamPeer) => boolean {
  return ({ state, isIdle }) => state === 'open' && isIdle === idle;
}

function pickAndAct<Peer>(
  peers: readonly Peer[],
  index: number,
  fits: (peer: Peer) => boolean,
  act: (peer: Peer) => void,
): boolean {
  const fitting = peers.filter(fits);
  const peer = fitting[index % Math.max(1, fitting.length)];
  if (peer === undefined) return false;
  act(peer);
  return true;
}
