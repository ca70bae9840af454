import type { Arrival, AskedRequest, Departure } from './asked-request.ts';
import { idOf, type Message, statusOf } from './message.ts';
import type { ModelBearer } from './model-bearer.ts';
import type { AppPeer, Cut, UpstreamPeer } from './peers.ts';
import { Violation } from './violation.ts';
import { BOUNDS, REPLAY_BYTES, type Walk } from './walk.ts';

/** Every bound of the data path on a request is longer, but for the second that it gives one it has answered. */
const LATE_MS = BOUNDS.connectMs - 500;
const LINGER_MS = 900;

/** What is known of both sides of the data path. */
export interface Scene {
  readonly versions: Pick<Walk, 'app' | 'upstream'>;
  readonly bearer: ModelBearer;
  readonly requests: readonly AskedRequest[];
  readonly upstreams: readonly UpstreamPeer[];
  /** How far the clocks have moved. */
  readonly movedMs: number;
  readonly draining: boolean;
  trace(line: string): void;
}

/** Says whether what the data path does with requests is right. Each of its words throws a `Violation` where it is not. */
export class Judge {
  readonly #scene: Scene;

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  /** No request leaves without a token, or with one that is over. */
  departure(connection: number, { startLine, fields }: Message, stream: number | undefined): void {
    const { bearer, requests, trace } = this.#scene;
    const asked = requests[idOf(startLine) - 1];
    if (asked === undefined) throw new Violation(`a request left that nobody had asked: ${startLine}`);
    const authorization = fields.get('authorization');
    if (authorization === undefined) throw new Violation(`${asked} left without a token`);
    // Over HTTP/2 what is written in a turn leaves at its end.
    const isOverHttp2 = stream !== undefined;
    if (!(isOverHttp2 ? bearer.mayLeaveInTurn(authorization) : bearer.mayLeave(authorization)))
      throw new Violation(`${asked} left with a token that was over`);
    trace(`${asked} leaves on connection ${connection}${stream === undefined ? '' : `, stream ${stream}`}`);
    this.#repetition(asked, authorization);
    const upstream = this.#upstreamOf({ connection });
    const departure = { connection, stream, reused: upstream?.isUsed ?? false, authorization };
    if (!asked.idempotent && upstream?.endHasCome === true) {
      throw new Violation(`${asked} left on a connection that the upstream had long ended`);
    }
    asked.departures.push(departure);
    upstream?.wasUsed();
  }

  /** What has come once, and was not refused for its token or unread, does not come again unless that is harmless. */
  arrival({ asked, connection }: Arrival): void {
    this.#scene.trace(`${asked} arrives on connection ${connection}`);
    if (asked.idempotent) return;
    if (asked.arrivals.some(({ answer, unprocessed }) => answer?.refusesToken !== true && !unprocessed)) {
      throw new Violation(`${asked} was sent twice`);
    }
  }

  /** An answer is that of its own request, and whole; or it is the data path's own, for a reason. */
  answer(asked: AskedRequest, { startLine, fields, body }: Message): void {
    const status = statusOf(startLine);
    const own = fields.get('token-sidecar-error');
    this.#scene.trace(`${asked} gets ${status} ${own ?? fields.get('x-for')}`);
    if (own !== undefined) {
      this.#localReply(asked, own);
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
    if (asked.grpc && status === 200 && !fields.has('grpc-status')) {
      throw new Violation(`${asked} got no status of gRPC`);
    }
  }

  cut(app: AppPeer, asked: AskedRequest, amidst: boolean, how: Cut): void {
    this.#scene.trace(`${asked} is cut off${how === 'refused' ? ', as not looked at' : ''}`);
    if (how === 'refused' && asked.departures.length > 0) {
      throw new Violation(`${asked} was said not to be looked at, and had left`);
    }
    if (this.#scene.draining) return;
    const late = this.#scene.movedMs - asked.sinceMs;
    if (!asked.whole && app.state === 'ended') return;
    // An answer to a part of a request gives the app a second for the rest.
    if (app.hasStopped && late >= LINGER_MS) return;
    if (this.isLate(asked)) return;
    if (app.cutsTogether && app.asked.some((other) => !other.whole) && app.state === 'ended') return;
    const arrival = asked.lastArrival;
    if (arrival?.broken === true && arrival.answer !== undefined) return;
    const what = amidst ? 'amid its answer' : 'without an answer';
    throw new Violation(`${asked} was cut off ${what} for no reason`);
  }

  isLate(asked: AskedRequest): boolean {
    return !asked.answeredInTime && this.#scene.movedMs - asked.sinceMs >= LATE_MS;
  }

  /** Nothing is sent twice unasked. */
  #repetition(asked: AskedRequest, authorization: string): void {
    const before = asked.departures.at(-1);
    if (before === undefined) return;
    const answer = this.#arrivalOf(asked, before)?.answer;
    if (answer?.begun !== true) return;
    if (answer.refusesToken) {
      if (asked.departures.every((departure) => departure.authorization !== authorization)) return;
      throw new Violation(`${asked} was sent again with the token that was refused`);
    }
    throw new Violation(`${asked} was sent again though it was being answered`);
  }

  #localReply(asked: AskedRequest, code: string): void {
    if (this.#scene.draining || this.isLate(asked)) return;
    switch (code) {
      case 'token_unavailable':
        if (asked.tokenRefused) return;
        break;
      case 'upstream_protocol_error':
      case 'upstream_tls_error':
      case 'upstream_unreachable':
        if (asked.connectionsRefused) return;
        this.#failure(asked, code);
        return;
    }
    throw new Violation(`${asked} got ${code} for no reason`);
  }

  #failure(asked: AskedRequest, code: string): void {
    const departure = asked.departures.at(-1);
    if (departure === undefined) {
      // Over HTTP/2 it leaves at the end of the turn: of a connection that ends in it a larger body can't be had back.
      const isLost = asked.disturbances > 0 && asked.body.length > REPLAY_BYTES;
      if (isLost && this.#scene.versions.upstream === 'h2') return;
      throw new Violation(`${asked} got ${code}, and had never left`);
    }
    const upstream = this.#upstreamOf(departure);
    const arrival = this.#arrivalOf(asked, departure);
    const broken = arrival?.broken ?? (upstream?.brokenOff || !upstream?.looksAt(departure.stream));
    if (broken !== true) throw new Violation(`${asked} got ${code}, and nothing had gone wrong`);
    const tries = asked.departures.filter(({ authorization }) => authorization === departure.authorization);
    if (tries.length > 1) return;
    const isWhole = asked.whole && asked.body.length <= REPLAY_BYTES;
    // Once it goes elsewhere; what was to be written to a connection that ended meanwhile has done so already.
    if (arrival?.unprocessed === true && isWhole && asked.disturbances <= 1) {
      throw new Violation(`${asked} got ${code}, and was not sent again though it had not been looked at`);
    }
    const unanswered = arrival?.answer === undefined && upstream?.hasSpokenFor(arrival) !== true;
    if (asked.repeatable && departure.reused && unanswered && arrival?.reset !== true) {
      throw new Violation(`${asked} got ${code}, and was not tried again on a new connection`);
    }
  }

  #upstreamOf({ connection }: Pick<Departure, 'connection'>): UpstreamPeer | undefined {
    return this.#scene.upstreams.find(({ id }) => id === connection);
  }

  #arrivalOf(asked: AskedRequest, departure: Departure): Arrival | undefined {
    return this.#upstreamOf(departure)?.arrivals.find(
      (arrival) =>
        arrival.asked === asked &&
        (departure.stream === undefined
          ? arrival.authorization === departure.authorization
          : arrival.stream === departure.stream),
    );
  }
}
