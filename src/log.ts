/**
 * The logger, and what it must never print.
 *
 * Call sites log names and figures, never requests, headers or answers of the token endpoint. The redaction below
 * is the second line of defence, for the day somebody logs an object that carries one of these.
 */

import pino, { type Logger } from 'pino';

export type { Logger };

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const SECRET_KEYS = [
  'access_token',
  'accessToken',
  'authorization',
  'Authorization',
  'client_assertion',
  'client_secret',
  'clientSecret',
  'cookie',
  'password',
  'secret',
  'token',
];

/**
 * JSON lines on standard output, one event a line, `time` in ISO 8601 so that log collectors need no rule of ours.
 * Written synchronously: the last line before a crash is the one that matters.
 */
export function createLogger(level: LogLevel, destination?: { write(line: string): void }): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRET_KEYS.flatMap((key) => [key, `*.${key}`, `*.*.${key}`]), censor: '[redacted]' },
      serializers: { err: describeError },
    },
    destination ?? pino.destination({ fd: 1, sync: true }),
  );
}

/** An error as its chain of messages and codes. Library errors may carry requests with them; only these two are kept. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { code?: unknown };
  return {
    message: error.message,
    ...(typeof code === 'string' ? { code } : {}),
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
  };
}
