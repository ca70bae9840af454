/**
 * Call sites log names and figures, never requests, headers or answers of a token endpoint. Redaction is the second
 * line of defence.
 */

import type { Logger } from 'pino';
import pino from 'pino';
import { type Clock, systemClock } from '../time/clock.ts';
import type { LogLosses } from './output.ts';
import { describeError, withoutSecrets } from './redaction.ts';

export type { Logger };

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const ONE_OF_LOG_LEVELS = `One of ${LOG_LEVELS.join(', ')}`;

/** These have few values, and distinguish kinds of warnings. */
const KIND_FIELDS = ['route', 'error', 'result', 'status', 'client', 'namespace', 'entry'];

interface LogDestination {
  write(line: string): void;
  readonly losses?: LogLosses;
  beforeEnd?(write: () => void): void;
}

/**
 * JSON lines with `time` in ISO 8601. In ten seconds, ten warnings and errors of a kind are printed, and the rest
 * counted.
 */
export function createLogger(
  level: LogLevel,
  destination: LogDestination = NOWHERE,
  clock: Clock = systemClock,
): Logger {
  const limit = new LogThrottle(clock);
  destination.beforeEnd?.(() => limit.summarizeOpen());
  const children = new Set<WeakRef<Logger>>();
  const logger = pino(
    {
      level,
      onChild: (child) => {
        for (const reference of children) if (reference.deref() === undefined) children.delete(reference);
        children.add(new WeakRef(child));
      },
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: (facts) => withoutSecrets(facts) },
      serializers: { err: describeError },
      hooks: {
        logMethod(args, method, severity) {
          const [facts, text] = typeof args[0] === 'object' ? [args[0], args[1]] : [{}, args[0]];
          const kind = LIMITED.has(severity) && !WHOLE.has(this) ? kindOf(facts) : undefined;
          const passes =
            kind === undefined ||
            limit.admits(keyOf(this, severity, text, kind), ({ leftOut, withinMs, mixed }) =>
              mixed
                ? method.apply(this, [{ leftOut, withinMs }, 'more lines of many kinds were left out'])
                : method.apply(this, [
                    { ...kind, leftOut, withinMs },
                    `${text}: more of the same were left out`,
                  ]),
            );
          if (passes) method.apply(this, args);
          else if (destination.losses !== undefined) destination.losses.repeated += 1;
        },
      },
    },
    destination,
  );
  // Children inherit it.
  const { child } = logger;
  logger.child = function (this: Logger, bindings: object, options?: object) {
    return child.call(this, withoutSecrets(bindings), options);
  } as typeof child;
  CHILDREN.set(logger, children);
  return logger;
}

const CHILDREN = new WeakMap<Logger, Set<WeakRef<Logger>>>();

/** Also of all loggers made from it. */
export function setLogLevel(logger: Logger, level: LogLevel): void {
  logger.level = level;
  for (const reference of CHILDREN.get(logger) ?? []) {
    const child = reference.deref();
    if (child !== undefined) child.level = level;
  }
}

const WHOLE = new WeakSet<Logger>();

/** Prints repeated warnings, too: for lines that are bounded elsewhere. */
export function withoutRepeatLimit(logger: Logger): Logger {
  const whole = logger.child({});
  WHOLE.add(whole);
  return whole;
}

const NOWHERE: LogDestination = { write: () => undefined };
const LIMITED = new Set([pino.levels.values['warn'], pino.levels.values['error']]);

type Facts = Readonly<Record<string, unknown>>;

function kindOf(facts: unknown): Facts {
  const given = (facts ?? {}) as Facts;
  // An upstream's status varies too much to be a kind.
  const tells = (name: string) =>
    given[name] !== undefined && (name !== 'status' || given['error'] === undefined);
  return Object.fromEntries(KIND_FIELDS.filter(tells).map((name) => [name, given[name]]));
}

function keyOf(logger: Logger, severity: number, text: unknown, kind: Facts): string {
  const bindings = (logger as unknown as Record<symbol, unknown>)[pino.symbols.chindingsSym];
  return [severity, text, bindings, JSON.stringify(kind)].join('\0');
}

const WINDOW_MS = 10_000;
const EVENTS_PER_WINDOW = 10;
/** The others share one allowance. */
const MAX_KINDS = 256;
const ALL_OTHERS = '\0';

interface HeldBack {
  readonly leftOut: number;
  readonly withinMs: number;
  readonly mixed: boolean;
}

interface Window {
  events: number;
  leftOut: number;
  readonly summarize: () => void;
}

/** Admits the first few events of a kind in each period, and counts the others. */
class LogThrottle {
  readonly #clock: Clock;
  readonly #windows = new Map<string, Window>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param summarize called at the end of the period or program, if any were held back. */
  admits(kind: string, summarize: (heldBack: HeldBack) => void): boolean {
    const key = this.#windows.has(kind) || this.#windows.size < MAX_KINDS ? kind : ALL_OTHERS;
    const window = this.#windows.get(key);
    if (window === undefined) {
      this.#open(key, summarize);
      return true;
    }
    window.events += 1;
    if (window.events <= EVENTS_PER_WINDOW) return true;
    window.leftOut += 1;
    return false;
  }

  /** Reports what the open periods have held back: for the end of the program. */
  summarizeOpen(): void {
    for (const window of [...this.#windows.values()]) window.summarize();
  }

  #open(key: string, summarize: (heldBack: HeldBack) => void): void {
    const window: Window = {
      events: 1,
      leftOut: 0,
      summarize() {
        const { leftOut } = window;
        window.leftOut = 0;
        if (leftOut > 0) summarize({ leftOut, withinMs: WINDOW_MS, mixed: key === ALL_OTHERS });
      },
    };
    this.#windows.set(key, window);
    this.#clock.after(WINDOW_MS, () => {
      this.#windows.delete(key);
      window.summarize();
    });
  }
}
