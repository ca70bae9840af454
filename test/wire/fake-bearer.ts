import {
  type BearerSource,
  type GrantTrace,
  TokenUnavailable,
  type TokenWaiter,
} from '../../src/token/bearer-source.ts';

/** A recognisable part of every token in this suite; it must turn up in no log line. */
export const TOKEN_MARK = 'wire-token';

export const FIRST = `Bearer ${TOKEN_MARK}-1`;
export const SECOND = `Bearer ${TOKEN_MARK}-2`;

export interface BearerScript {
  /** What `current` answers at first; `undefined` says that no token is held. */
  readonly held?: string | undefined;
  readonly obtain?: () => Promise<string>;
  readonly replace?: (refused: string) => Promise<string | undefined>;
  /** That whoever asks for a token waits for. */
  readonly grant?: GrantTrace;
}

/** A token source that does as it is told and remembers what it was asked. What it gives out it holds from then on. */
export class FakeBearer implements BearerSource {
  held: string | undefined;
  obtained = 0;
  readonly refused: string[] = [];
  /** Each value as often as it was told. */
  readonly accepts: string[] = [];
  /** Who asked for a token, or for another. */
  readonly waiters: (TokenWaiter | undefined)[] = [];
  readonly #script: BearerScript;

  constructor(script: BearerScript = {}) {
    this.held = 'held' in script ? script.held : FIRST;
    this.#script = script;
  }

  /** The same for every upstream. */
  forUpstream(): this {
    return this;
  }

  accepted(authorization: string): void {
    this.accepts.push(authorization);
  }

  current(): string | undefined {
    return this.held;
  }

  async obtain(waiter?: TokenWaiter): Promise<string> {
    this.waiters.push(waiter);
    if (this.#script.grant !== undefined) waiter?.awaits?.(this.#script.grant);
    this.obtained += 1;
    this.held = await (this.#script.obtain ?? refuseToken)();
    return this.held;
  }

  async replace(refused: string, waiter?: TokenWaiter): Promise<string | undefined> {
    this.waiters.push(waiter);
    if (this.#script.grant !== undefined) waiter?.awaits?.(this.#script.grant);
    this.refused.push(refused);
    const other = await this.#script.replace?.(refused);
    if (other !== undefined) this.held = other;
    return other;
  }
}

/** A source without a token; asking again may help in 7 s. */
export function withoutToken(): FakeBearer {
  return new FakeBearer({ held: undefined });
}

/** A source whose first token is refused upstream, and whose second is not. */
export function renewable(): FakeBearer {
  return new FakeBearer({ replace: async () => SECOND });
}

async function refuseToken(): Promise<string> {
  throw new TokenUnavailable('no token is to be had in this test', 7000);
}
