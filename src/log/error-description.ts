/** An error as its chain of messages and codes. Library errors may carry requests with them; only these two are kept. */
export function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { code?: unknown };
  return {
    message: error.message,
    ...(typeof code === 'string' ? { code } : {}),
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
  };
}
