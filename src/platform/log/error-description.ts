/** In a chain of causes, which may be circular. */
const MAX_ERRORS = 8;

/** An error as its chain of messages and codes. Library errors may carry requests; only these two are kept. */
export function describeError(error: unknown, most = MAX_ERRORS): unknown {
  if (!(error instanceof Error)) return textOf(error);
  const { code } = error as { code?: unknown };
  return {
    message: error.message,
    ...(typeof code === 'string' ? { code } : {}),
    ...(error.cause === undefined || most <= 1 ? {} : { cause: describeError(error.cause, most - 1) }),
  };
}

/** Only the kind of an object: its own text may hold anything, or be missing. */
function textOf(thrown: unknown): string {
  return typeof thrown === 'object' ? Object.prototype.toString.call(thrown) : String(thrown);
}
