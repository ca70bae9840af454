/**
 * Call sites log names and figures, never requests, headers or answers of a token endpoint. Redaction is the second
 * line of defence.
 */

import type { Logger } from 'pino';
import pino from 'pino';
import { type Clock, systemClock } from '../time/clock.ts';
import { Incidents } from './incidents.ts';
import type { LogLosses } from './output.ts';
import { describeError, withoutSecrets } from './redaction.ts';

export type { Logger };

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const ONE_OF_LOG_LEVELS = `One of ${LOG_LEVELS.join(', ')}`;

/** These have few values, and distinguish kinds of warnings. */
const KIND_FIELDS = ['route', 'error', 'result', 'status', 'client', 'namespace', 'entry'];
/** All other words of a line are its cause. */
const NO_CAUSE: ReadonlySet<string> = new Set(['requestId', 'traceId', 'spanId', 'method']);
/** Ten of each kind are remembered. */
const MAX_CAUSE_LENGTH = 1000;

interface LogDestination {
  write(line: string): void;
  readonly losses?: LogLosses;
  beforeEnd?(write: () => void): void;
}

/** JSON lines with `time` in ISO 8601. Repeated warnings and errors of a kind are counted: see `Incidents`. */
export function createLogger(
  level: LogLevel,
  destination: LogDestination = NOWHERE,
  clock: Clock = systemClock,
): Logger {
  const incidents = new Incidents(clock);
  destination.beforeEnd?.(() => incidents.tellCounts());
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
          if (!LIMITED.has(severity) || WHOLE.has(this)) return method.apply(this, args);
          const [given, text] = typeof args[0] === 'object' ? [args[0], args[1]] : [{}, args[0]];
          const facts = (given ?? {}) as Facts;
          const kind = kindOf(facts);
          const figures = incidents.add({
            ...keysOf(this, severity, text, kind),
            cause: causeOf(facts),
            summarize: ({ figures, isOver, isMixed }) => {
              const facts = { ...(isMixed ? {} : kind), ...figures };
              if (isOver) this.info(facts, `${text}: no more of these for a minute`);
              else method.apply(this, [facts, `${text}: more of these`]);
            },
          });
          if (figures !== undefined && Object.keys(figures).length === 0) method.apply(this, args);
          else if (figures !== undefined) method.apply(this, [{ ...facts, ...figures }, text as string]);
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

function kindOf(facts: Facts): Facts {
  // An upstream's status varies too much to be a kind.
  const tells = (name: string) =>
    facts[name] !== undefined && (name !== 'status' || facts['error'] === undefined);
  return Object.fromEntries(KIND_FIELDS.filter(tells).map((name) => [name, facts[name]]));
}

function keysOf(logger: Logger, severity: number, text: unknown, kind: Facts) {
  const bindings = (logger as unknown as Record<symbol, unknown>)[pino.symbols.chindingsSym];
  const lines = [severity, text, bindings].join('\0');
  const { route } = kind;
  return {
    kind: `${lines}\0${JSON.stringify(kind)}`,
    statement: [severity, text].join('\0'),
    subject: route === undefined ? undefined : `${lines}\0${route}`,
  };
}

function causeOf(facts: Facts): string {
  const words = Object.entries(facts).map(([name, value]) => {
    if (name === 'err') return JSON.stringify(describeError(value));
    return (typeof value === 'string' && !NO_CAUSE.has(name)) || Array.isArray(value) ? String(value) : '';
  });
  return words.join('\0').slice(0, MAX_CAUSE_LENGTH);
}
