/** The actions of the demo's keys: mishaps that a sidecar meets, and their end. */

import { seconds } from './narration.ts';

/** The parts of the demo that a mishap befalls. */
interface Stage {
  /** Gives the client another secret at the issuer; resolves to it. */
  changeSecret(): Promise<string>;
  /** Puts a client secret into the mounted Secret, as the kubelet does. */
  mountSecret(clientSecret: string): Promise<void>;
  cutProvider(): Promise<void>;
  mendProvider(): Promise<void>;
  delayProvider(delayMs: number): void;
  /** Whether the API answers 401 to every token. */
  refuseTokens(refused: boolean): void;
  say(sentence: string): void;
}

interface Controls {
  readonly keys: Readonly<Record<'r' | 'w' | 'p' | 's' | 'u', () => void>>;
  /** Changes the client secret, as `r` does. */
  rotate(): void;
  /** Resolves once every action begun is done. */
  settled(): Promise<unknown>;
}

export const KEYS = `Keys:  r  rotate the client secret        w  wrong secret, and the right one again
       p  provider down, and up again     s  slow provider, and a fast one again
       u  upstream answers 401, and 200   q  quit
`;

/** @param slowMs how long a slow provider takes. Milliseconds. */
export function createControls(stage: Stage, clientSecret: string, slowMs: number): Controls {
  let right = clientSecret;
  let isWrong = false;
  let isDown = false;
  let isSlow = false;
  let isRefused = false;
  let last: Promise<unknown> = Promise.resolve();

  /** One after the other, so that a key held down begins nothing before the last action has ended. */
  function inTurn(action: () => Promise<string>): void {
    last = last.then(action).then(
      (sentence) => stage.say(sentence),
      (error: unknown) => stage.say(`That could not be done: ${String(error)}.`),
    );
  }

  function rotate(): void {
    inTurn(async () => {
      right = await stage.changeSecret();
      isWrong = false;
      await stage.mountSecret(right);
      return 'You changed the client secret, at the issuer and in the mounted Secret.';
    });
  }

  return {
    rotate,
    settled: () => last,
    keys: {
      r: rotate,
      w: () =>
        inTurn(async () => {
          await stage.mountSecret(isWrong ? right : `not ${right}`);
          isWrong = !isWrong;
          return `You put the ${isWrong ? 'wrong' : 'right'} client secret into the mounted Secret.`;
        }),
      p: () =>
        inTurn(async () => {
          await (isDown ? stage.mendProvider() : stage.cutProvider());
          isDown = !isDown;
          return isDown
            ? 'You took the provider down: connections to it are refused.'
            : 'You brought the provider up again.';
        }),
      s: () =>
        inTurn(async () => {
          isSlow = !isSlow;
          stage.delayProvider(isSlow ? slowMs : 0);
          return isSlow
            ? `You made the provider slow: it takes ${seconds(slowMs)} for an answer.`
            : 'You made the provider fast again.';
        }),
      u: () =>
        inTurn(async () => {
          isRefused = !isRefused;
          stage.refuseTokens(isRefused);
          return isRefused
            ? 'You made the API refuse every token: it answers 401.'
            : 'You made the API take tokens again.';
        }),
    },
  };
}
