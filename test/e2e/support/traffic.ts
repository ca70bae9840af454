import { setTimeout as passes } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import type { AppAnswer, SidecarUnderTest } from './sidecar.ts';

/** Short beside every lifetime that is tested, long enough to leave the machine to the provider. */
const PAUSE_MS = 25;

export interface Traffic {
  readonly answers: readonly AppAnswer[];
  /** Resolves at the first answer from now on that `wanted` holds for. */
  until(wanted: (answer: AppAnswer) => boolean): Promise<AppAnswer>;
  /** Ends it, and resolves to all answers. */
  stop(): Promise<readonly AppAnswer[]>;
}

/** An app that sends one request after the other until it is stopped, or the test ends. */
export function startTraffic(sidecar: Pick<SidecarUnderTest, 'request'>): Traffic {
  const answers: AppAnswer[] = [];
  const waiting = new Map<(answer: AppAnswer) => boolean, (answer: AppAnswer) => void>();
  let stopped = false;

  async function send(): Promise<void> {
    while (!stopped) {
      const answer = await sidecar.request();
      answers.push(answer);
      for (const [wanted, resolve] of waiting) {
        if (!wanted(answer)) continue;
        waiting.delete(wanted);
        resolve(answer);
      }
      await passes(PAUSE_MS);
    }
  }
  const ended = send();

  async function stop(): Promise<readonly AppAnswer[]> {
    stopped = true;
    await ended;
    return answers;
  }
  // A test that fails must not leave its app behind.
  onTestFinished(async () => void (await stop()));

  return {
    answers,
    until: (wanted) => new Promise((resolve) => waiting.set(wanted, resolve)),
    stop,
  };
}

/** Sends requests until one is answered to another token than `before`. Resolves to all answers, that one last. */
export async function trafficUntilNewToken(
  sidecar: Pick<SidecarUnderTest, 'request'>,
  before: AppAnswer,
): Promise<readonly AppAnswer[]> {
  const traffic = startTraffic(sidecar);
  await traffic.until(({ body }) => 'claims' in body && tokenId(body) !== tokenId(before.body));
  return await traffic.stop();
}

/** The `jti` of the token that the upstream saw; undefined when it refused it. */
export function tokenId(body: AppAnswer['body']): string | undefined {
  return 'claims' in body ? body.claims.jti : undefined;
}
