import type { UpstreamUser } from '../streams/upstream-stream.ts';

/** The user of a connection that is made before it is needed. It ignores every event. */
export const NOBODY: UpstreamUser = {
  connected() {},
  informed() {},
  answered() {},
  switched() {},
  answerData() {},
  answerEnded() {},
  flushAnswer() {},
  upstreamReady() {},
  stalled() {},
  upstreamFailed() {},
};
