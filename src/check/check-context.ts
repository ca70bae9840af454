import type { LookupFunction } from 'node:net';
import type { EgressProxyConfig, TlsConfig, UpstreamProtocol } from '../config/config.ts';
import { messageOf, systemCodeOf } from '../platform/errors.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { EgressFailure } from '../token/egress/egress-tunnel.ts';
import { STEPS, type StepName } from './steps.ts';

export interface CheckContext {
  readonly clock: Clock;
  /** Aborts when the time for all steps is up. */
  readonly signal: AbortSignal;
  /** Examine only configuration and files. */
  readonly isOffline: boolean;
  /** Set if hosts are captured: the hosts file leads them to the sidecar. */
  readonly lookup?: LookupFunction;
}

/** The message may be shown. */
class TooLate extends Error {}

/**
 * `abandon` ends what is late.
 * @throws {TooLate} after `withinMs`, or once the examination's time is up.
 */
export async function inTime<T>(
  begun: Promise<T>,
  { clock, signal }: Pick<CheckContext, 'clock' | 'signal'>,
  withinMs: number,
  abandon: () => void = () => undefined,
): Promise<T> {
  const late = Promise.withResolvers<never>();
  const giveUp = (message: string) => {
    late.reject(new TooLate(message));
    abandon();
  };
  const cancel = clock.after(withinMs, () => giveUp(`no answer within ${withinMs} ms`));
  const onAbort = () => giveUp('the time for all steps is up');
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([begun, late.promise]);
  } finally {
    cancel();
    signal.removeEventListener('abort', onAbort);
  }
}

/** The class is loaded only where it is used. */
const EGRESS_FAILURE: EgressFailure['name'] = 'EgressFailure';

/** Prefers the system's code: a message may quote its input. */
export function wordsFor(error: unknown): string {
  if (error instanceof TooLate) return error.message;
  if (error instanceof Error && error.name === EGRESS_FAILURE) return error.message;
  return systemCodeOf(error) ?? messageOf(error);
}

export interface Destination {
  readonly protocol: 'http' | 'https';
  /** IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  readonly tls: TlsConfig;
  /** Replaces `certFile` and `keyFile`, as PEM. */
  readonly identity?: { readonly cert: string; readonly key: string };
  /** HTTP versions to offer in the handshake. */
  readonly offers: readonly string[];
  /** Of an upstream. */
  readonly speaks?: UpstreamProtocol;
  readonly egressProxy?: EgressProxyConfig;
  /** For the lookup, the connection and the handshake each. */
  readonly withinMs: number;
  readonly lookup?: LookupFunction;
  /** Set if the sidecar ends apps' TLS: it may answer in place of a host. */
  readonly trustDirectory?: string;
}

/** Each is an exit status in `exit-status.ts`. */
type Failure = 'configuration' | 'credentials_rejected' | 'provider_unavailable';

/** Never holds a token, a secret or a client's id. */
export type Finding = {
  /** `token-sidecar explain` has it. */
  readonly step: StepName;
  /** `credential shop`; absent for the program. */
  readonly subject?: string;
  /** `credential shop: token`. */
  readonly what: string;
  readonly detail: string;
} & (
  | { readonly verdict: 'ok' }
  /** @property failure of a failed step, if the pod can do without the part or it cannot be seen from here. */
  | { readonly verdict: 'warning'; readonly remedy: string; readonly failure?: Failure }
  | { readonly verdict: 'failure'; readonly remedy: string; readonly failure: Failure }
);

export interface About {
  ok(step: StepName, detail: string): Finding;
  /**
   * @param remedy a clause.
   * @param failure if what builds on the step is not tried.
   */
  warning(step: StepName, detail: string, remedy: string, failure?: Failure): Finding;
  /** A warning if the pod starts without it. */
  failure(step: StepName, failure: Failure, detail: string, remedy: string): Finding;
}

/**
 * @param subject `credential shop`; undefined for the program.
 * @param isOptional the pod starts without it.
 */
export function about(subject: string | undefined, isOptional = false): About {
  const named = (step: StepName, detail: string) => {
    const { title } = STEPS[step];
    return subject === undefined
      ? { step, what: title, detail }
      : { step, subject, what: `${subject}: ${title}`, detail };
  };
  return {
    ok: (step, detail) => ({ ...named(step, detail), verdict: 'ok' }),
    warning: (step, detail, remedy, failure) => ({
      ...named(step, detail),
      verdict: 'warning',
      remedy,
      ...(failure === undefined ? {} : { failure }),
    }),
    failure: (step, failure, detail, remedy) => ({
      ...named(step, detail),
      verdict: isOptional ? 'warning' : 'failure',
      failure,
      remedy,
    }),
  };
}

const AT_ONCE = 8;

/** `Promise.all` with at most `AT_ONCE` under way. */
export async function mapConcurrent<T, R>(items: readonly T[], each: (item: T) => Promise<R>): Promise<R[]> {
  const results = new Array<R>(items.length);
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) {
      results[index] = await each(items[index] as T);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, work));
  return results;
}
