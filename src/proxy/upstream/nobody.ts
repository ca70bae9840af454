import type { UpstreamUser } from '../streams/upstream-stream.ts';

/** Stands for the user of a connection that is made before anybody wants it. Nothing that it is told needs doing. */
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
