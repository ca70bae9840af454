const SECRET_KEYS: ReadonlySet<string> = new Set([
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
]);

const CENSOR = '[redacted]';

const UNPRINTABLE = '[cannot be printed]';

/** The fields of a line, and two levels inside them. */
const LEVELS = 3;

/**
 * Returns the same object if no key names a secret, otherwise a copy with such values replaced by `[redacted]`. Pino's
 * own redaction takes 40 µs for seven fields; this takes less than one.
 */
export function withoutSecrets<T extends object>(facts: T, levels: number = LEVELS): T {
  let copy: Record<string, unknown> | undefined;
  for (const key of Object.keys(facts)) {
    const value: unknown = (facts as Record<string, unknown>)[key];
    // Described where it is printed.
    if (key === 'err' && levels === LEVELS) continue;
    const shown = SECRET_KEYS.has(key) && value !== undefined ? CENSOR : within(value, levels - 1);
    if (shown === value) continue;
    copy ??= (Array.isArray(facts) ? [...facts] : { ...facts }) as Record<string, unknown>;
    copy[key] = shown;
  }
  return (copy as T | undefined) ?? facts;
}

function within(value: unknown, levels: number): unknown {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  if (value instanceof Error) return describeError(value);
  if (levels === 0) return value;
  const shown = asPrinted(value);
  return typeof shown === 'object' && shown !== null ? withoutSecrets(shown, levels) : shown;
}

/** Copying the fields would show what `toJSON` withholds. */
function asPrinted(value: object): unknown {
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON !== 'function') return value;
  try {
    return toJSON.call(value);
  } catch {
    return UNPRINTABLE;
  }
}

/** Causes may be circular. */
const MAX_ERRORS = 8;

/** Keeps only messages and codes, since library errors may carry requests. */
export function describeError(error: unknown, most = MAX_ERRORS): unknown {
  if (!(error instanceof Error)) return textOf(error);
  const { code } = error as { code?: unknown };
  return {
    message: error.message,
    ...(typeof code === 'string' ? { code } : {}),
    ...(error.cause === undefined || most <= 1 ? {} : { cause: describeError(error.cause, most - 1) }),
  };
}

/** An object's own text may hold anything, or be missing. */
function textOf(thrown: unknown): string {
  return typeof thrown === 'object' ? Object.prototype.toString.call(thrown) : String(thrown);
}
