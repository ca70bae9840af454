import type { DataPath } from '../../src/proxy/data-path.ts';
import { AppPeer, statusOf } from './app-peer.ts';
import { type Arrival, AskedRequest, type Departure } from './asked-request.ts';
import { Http1Reader, type Message } from './http1-reader.ts';
import type { ModelBearer } from './model-bearer.ts';
import { idOf, UpstreamPeer } from './upstream-peer.ts';
import { Violation } from './violation.ts';
import { type Action, BOUNDS } from './walk.ts';
import type { PeerEnd, World } from './world.ts';

/** Every bound of the data path on a request is longer, but for the second that it gives one it has answered. */
const LATE_MS = BOUNDS.connectMs - 500;
const LINGER_MS = 900;

const MOST_APPS = 4;

/** Both sides of the data path, everything that they said to each other, and whether that was right. */
export class Model {
  readonly apps: AppPeer[] = [];
  readonly upstreams: UpstreamPeer[] = [];
  /** The first thing that was wrong. */
  violation: Error | undefined;
  /** How far the clocks have moved. */
  movedMs = 0;
  draining = false;
  readonly #world: World;
  readonly #bearer: ModelBearer;
  readonly #address: DataPath['address'];
  readonly #trace: (line: string) => void;
  readonly #requests: AskedRequest[] = [];
  /** Reads what the data path writes to each upstream connection, while it lives. */
  readonly #written = new Map<number, Http1Reader>();
  /** Connections that a request has been written to. */
  readonly #used = new Set<number>();

  constructor(
    world: World,
    bearer: ModelBearer,
    address: DataPath['address'],
    trace: (line: string) => void,
  ) {
    this.#trace = trace;
    this.#world = world;
    this.#bearer = bearer;
    this.#address = address;
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
    switch (action.do) {
      case 'app opens':
        if (this.apps.filter(({ isOpen }) => isOpen).length >= MOST_APPS) return false;
        this.apps.push(this.#openApp());
        return true;
      case 'app asks':
        return this.#app(
          action.app,
          ({ mayAsk }) => mayAsk,
          (app) => {
            const asked = this.#request(action, app);
            app.ask(asked, action);
          },
        );
      case 'app goes on':
        return this.#app(
          action.app,
          ({ isAmidst }) => isAmidst,
          (app) => app.goOn(),
        );
      case 'app ends':
        return this.#app(
          action.app,
          ({ state, isOpen }) => isOpen && state === 'open',
          (app) => app.end(),
        );
      case 'app leaves':
        return this.#app(
          action.app,
          ({ isOpen }) => isOpen,
          (app) => app.leave(action.how),
        );
      case 'app stops reading':
        return this.#app(
          action.app,
          ({ isOpen }) => isOpen,
          (app) => app.pause(),
        );
      case 'app reads on':
        return this.#app(
          action.app,
          ({ isOpen }) => isOpen,
          (app) => app.resume(),
        );
      case 'upstream answers':
        return this.#upstream(
          action.upstream,
          ({ waiting }) => waiting !== undefined,
          (upstream) => upstream.answer(action),
        );
      case 'upstream goes on':
        return this.#upstream(
          action.upstream,
          ({ isAmidstAnswer }) => isAmidstAnswer,
          (upstream) => upstream.goOn(action.afterwards),
        );
      case 'upstream informs':
        return this.#upstream(
          action.upstream,
          ({ waiting }) => waiting !== undefined,
          (upstream) => upstream.inform(action.status),
        );
      case 'upstream says more':
        return this.#upstream(
          action.upstream,
          ({ isIdle }) => isIdle,
          (upstream) => upstream.sayMore(),
        );
      case 'upstream ends':
        return this.#upstream(action.upstream, isOpenAnd(action.idle), (upstream) => upstream.end());
      case 'upstream resets':
        return this.#upstream(action.upstream, isOpenAnd(action.idle), (upstream) => upstream.reset());
      case 'upstream stops reading':
        return this.#upstream(
          action.upstream,
          ({ state }) => state === 'open',
          (upstream) => upstream.pause(),
        );
      case 'upstream reads on':
        return this.#upstream(
          action.upstream,
          ({ state }) => state === 'open',
          (upstream) => upstream.resume(),
        );
      case 'connections':
        this.#world.connecting = action.are;
        this.#noteRefusals();
        return true;
      case 'token ends':
        this.#bearer.end();
        return true;
      case 'token is granted':
        this.#bearer.grant(action.lifetimeMs);
        return true;
      case 'token is refused':
        for (const asked of this.outstanding) asked.tokenRefused = true;
        this.#bearer.refuse();
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
    for (const upstream of this.upstreams) upstream.endHasCome = upstream.brokenOff;
    for (const asked of this.outstanding) asked.mayBeAnsweredAtMs = undefined;
  }

  /** The clocks are about to jump: answers that are on their way by then are no later for it. */
  beforeJump(): void {
    for (const app of this.apps) {
      const [asked] = app.outstanding;
      if (asked !== undefined) asked.mayBeAnsweredAtMs ??= this.movedMs;
      const answer = asked?.lastArrival?.answer;
      if (asked === undefined || answer === undefined || !asked.whole) continue;
      const small = answer.body.length < 16_000;
      if (answer.complete && answer.status !== 401 && small && !app.paused && !this.#isLate(asked)) {
        asked.answeredInTime = true;
      }
    }
  }

  #openApp(): AppPeer {
    const app = new AppPeer(this.#world.connectApp(this.#address), {
      answered: (by, asked, answer) => this.#guard(() => this.#judgeAnswer(by, asked, answer)),
      cut: (by, asked, amidst) => this.#guard(() => this.#judgeCut(by, asked, amidst)),
      failed: (error) => this.#fail(error),
    });
    app.usedMs = this.movedMs;
    return app;
  }

  #request({ method, bytes }: Extract<Action, { do: 'app asks' }>, app: AppPeer): AskedRequest {
    const asked = new AskedRequest(this.#requests.length + 1, method, bytes, app.usedMs);
    this.#requests.push(asked);
    asked.connectionsRefused = this.#world.connecting === 'refused';
    return asked;
  }

  #noteRefusals(): void {
    if (this.#world.connecting !== 'refused') return;
    for (const asked of this.outstanding) asked.connectionsRefused = true;
  }

  #connected(end: PeerEnd): void {
    const upstream = new UpstreamPeer(end, {
      find: (id) => this.#requests[id - 1],
      arrived: (arrival) => this.#judgeArrival(arrival),
      failed: (error) => this.#fail(error),
    });
    this.upstreams.push(upstream);
  }

  #readerOf(connection: number): Http1Reader {
    const known = this.#written.get(connection);
    if (known !== undefined) return known;
    const reader = new Http1Reader('requests', {
      onHead: (message) => {
        this.#judgeDeparture(connection, message);
        return true;
      },
      onComplete: () => {},
    });
    this.#written.set(connection, reader);
    return reader;
  }

  /** No request leaves without a token, or with one that is over. */
  #judgeDeparture(connection: number, { startLine, fields }: Message): void {
    const asked = this.#requests[idOf(startLine) - 1];
    if (asked === undefined) throw new Violation(`a request left that nobody had asked: ${startLine}`);
    const authorization = fields.get('authorization');
    if (authorization === undefined) throw new Violation(`${asked} left without a token`);
    if (!this.#bearer.mayLeave(authorization))
      throw new Violation(`${asked} left with a token that was over`);
    this.#trace(`${asked} leaves on connection ${connection}`);
    this.#judgeRepetition(asked, authorization);
    const departure = { connection, reused: this.#used.has(connection), authorization };
    if (!asked.idempotent && this.#upstreamOf(departure)?.endHasCome === true) {
      throw new Violation(`${asked} left on a connection that the upstream had long ended`);
    }
    asked.departures.push(departure);
    this.#used.add(connection);
  }

  /** Nothing is sent twice unasked. */
  #judgeRepetition(asked: AskedRequest, authorization: string): void {
    const before = asked.departures.at(-1);
    if (before === undefined) return;
    const arrival = this.#arrivalOf(asked, before);
    const answer = arrival?.answer;
    if (answer?.status === 401) {
      if (asked.departures.every((departure) => departure.authorization !== authorization)) return;
      throw new Violation(`${asked} was sent again with the token that was refused`);
    }
    if (answer !== undefined) throw new Violation(`${asked} was sent again though it was being answered`);
  }

  /** What has come once, and was not refused for its token, does not come again unless that is harmless. */
  #judgeArrival({ asked, connection }: Arrival): void {
    this.#trace(`${asked} arrives on connection ${connection}`);
    if (asked.idempotent) return;
    if (asked.arrivals.some(({ answer }) => answer?.status !== 401)) {
      throw new Violation(`${asked} was sent twice`);
    }
  }

  #upstreamOf({ connection }: Departure): UpstreamPeer | undefined {
    return this.upstreams.find(({ id }) => id === connection);
  }

  #arrivalOf(asked: AskedRequest, departure: Departure): Arrival | undefined {
    return this.#upstreamOf(departure)?.arrivals.find(
      (arrival) => arrival.asked === asked && arrival.authorization === departure.authorization,
    );
  }

  /** An answer is that of its own request, and whole; or it is the data path's own, for a reason. */
  #judgeAnswer(app: AppPeer, asked: AskedRequest, { startLine, fields, body }: Message): void {
    // The data path may have written it before the jump: its connection has been idle since then.
    app.usedMs = asked.mayBeAnsweredAtMs ?? this.movedMs;
    const status = statusOf(startLine);
    const own = fields.get('token-sidecar-error');
    this.#trace(`${asked} gets ${status} ${own ?? fields.get('x-for')}`);
    if (own !== undefined) {
      this.#judgeOwnAnswer(asked, own);
      return;
    }
    const departure = asked.departures.at(-1);
    const arrival = departure && this.#arrivalOf(asked, departure);
    const name = fields.get('x-for');
    if (name === undefined || name !== arrival?.name) {
      throw new Violation(`${asked} got the answer ${name} in place of ${arrival?.name}`);
    }
    const sent = arrival.answer;
    if (sent === undefined || sent.status !== status) throw new Violation(`${asked} got status ${status}`);
    if (!sent.complete)
      throw new Violation(`${asked} got an answer as whole that the upstream had not ended`);
    const expected = asked.method === 'HEAD' ? Buffer.alloc(0) : sent.body;
    if (!Buffer.concat(body).equals(expected)) {
      throw new Violation(`${asked} got another body than was sent, or not all of it`);
    }
  }

  #judgeOwnAnswer(asked: AskedRequest, code: string): void {
    if (this.draining || this.#isLate(asked)) return;
    switch (code) {
      case 'token_unavailable':
        if (asked.tokenRefused) return;
        break;
      case 'upstream_protocol_error':
      case 'upstream_tls_error':
      case 'upstream_unreachable':
        if (asked.connectionsRefused) return;
        this.#judgeFailure(asked, code);
        return;
    }
    throw new Violation(`${asked} got ${code} for no reason`);
  }

  #judgeFailure(asked: AskedRequest, code: string): void {
    const departure = asked.departures.at(-1);
    if (departure === undefined) throw new Violation(`${asked} got ${code}, and had never left`);
    const upstream = this.#upstreamOf(departure);
    const arrival = this.#arrivalOf(asked, departure);
    const broken = arrival?.broken ?? upstream?.brokenOff;
    if (broken !== true) throw new Violation(`${asked} got ${code}, and nothing had gone wrong`);
    const unanswered = arrival?.answer === undefined && upstream?.hasSpokenFor(arrival) !== true;
    const tries = asked.departures.filter(({ authorization }) => authorization === departure.authorization);
    if (asked.repeatable && departure.reused && unanswered && tries.length === 1) {
      throw new Violation(`${asked} got ${code}, and was not tried again on a new connection`);
    }
  }

  #judgeCut(app: AppPeer, asked: AskedRequest, amidst: boolean): void {
    this.#trace(`${asked} is cut off`);
    if (this.draining) return;
    const late = this.movedMs - asked.sinceMs;
    if (!asked.whole && app.state === 'ended') return;
    // An answer to a part of a request gives the app a second for the rest.
    if (app.hasStopped && late >= LINGER_MS) return;
    if (this.#isLate(asked)) return;
    if (app.asked.some((other) => !other.whole) && app.state === 'ended') return;
    const arrival = asked.lastArrival;
    if (arrival?.broken === true && arrival.answer !== undefined) return;
    const how = amidst ? 'amid its answer' : 'without an answer';
    throw new Violation(`${asked} was cut off ${how} for no reason`);
  }

  #isLate(asked: AskedRequest): boolean {
    return !asked.answeredInTime && this.movedMs - asked.sinceMs >= LATE_MS;
  }

  #app(index: number, fits: (app: AppPeer) => boolean, act: (app: AppPeer) => void): boolean {
    return pickAndAct(this.apps, index, fits, act);
  }

  #upstream(
    index: number,
    fits: (upstream: UpstreamPeer) => boolean,
    act: (upstream: UpstreamPeer) => void,
  ): boolean {
    return pickAndAct(this.upstreams, index, fits, act);
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
