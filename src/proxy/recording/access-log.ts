import type { AccessLogConfig } from '../../config/config.ts';
import type { Logger } from '../../platform/log/logger.ts';
import type { UnreadRequest } from '../observer.ts';

/** What is logged of a request that has ended. Nothing in it is secret: no field, no query. */
interface AccessRecord {
  readonly requestId: string;
  readonly traceId: string | undefined;
  readonly spanId: string | undefined;
  /** By name; absent where callers are not told apart. */
  readonly caller: string | undefined;
  readonly method: string;
  readonly path: string;
  readonly protocol: string;
  readonly route: string | undefined;
  readonly upstream: string | undefined;
  readonly upstreamProtocol: string | undefined;
  readonly status: number;
  readonly grpcStatus: number | 'other' | undefined;
  /** The proxy's own error code. */
  readonly error: string | undefined;
  /** How often the request was sent upstream. */
  readonly sent: number;
  /** Bytes of bodies, or of a tunnel, from the app. */
  readonly requestBytes: number;
  /** The same, to the app. */
  readonly responseBytes: number;
  readonly durationMs: number;
  /** From the last sending to the head of its answer. */
  readonly upstreamMs: number | undefined;
}

/** Most is unknown about a request that could not be read. */
type UnreadRecord = UnreadRequest & Pick<AccessRecord, 'sent' | 'requestBytes'>;

type Outcome = Pick<AccessRecord, 'status' | 'error' | 'grpcStatus'>;

/** Logs a line for every request, for failed ones, or for a sample, which always includes failed ones. */
export class AccessLog {
  readonly #log: Logger;
  readonly #config: AccessLogConfig;
  readonly #random: () => number;

  /** @param random a number in [0, 1). */
  constructor(log: Logger, config: AccessLogConfig, random: () => number) {
    this.#log = log;
    this.#config = config;
    this.#random = random;
  }

  /** Whether a request with this outcome gets a line. Ask once per request: sampling is random. */
  wants(outcome: Outcome): boolean {
    return hasFailed(outcome) || (this.#config.requests === 'all' && this.#random() < this.#config.sample);
  }

  write(record: AccessRecord | UnreadRecord): void {
    this.#log.info(record, 'request');
  }

  /** Logs what could not be read as a request, which has failed. */
  writeUnread(unread: UnreadRequest): void {
    this.write({ ...unread, sent: 0, requestBytes: 0 });
  }
}

function hasFailed({ status, error, grpcStatus }: Outcome): boolean {
  return error !== undefined || status >= 400 || (grpcStatus !== undefined && grpcStatus !== 0);
}
