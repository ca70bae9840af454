/** A step's finding. Details hold names, addresses and figures; never a token, a secret or a client's id. */

import { STEPS, type StepName } from './steps.ts';

/** Which part has to be mended; each is an exit status in errors.ts. */
export type Failure = 'configuration' | 'credentials_rejected' | 'provider_unavailable';

export type Finding = {
  readonly step: StepName;
  /** What was examined: `credential shop: token`. */
  readonly what: string;
  readonly detail: string;
} & (
  | { readonly verdict: 'ok' }
  /** @property failure of a failed step, if the pod can do without the part or it cannot be seen from here. */
  | { readonly verdict: 'warning'; readonly remedy: string; readonly failure?: Failure }
  | { readonly verdict: 'failure'; readonly remedy: string; readonly failure: Failure }
);

/** Makes the findings about one thing. */
export interface About {
  ok(step: StepName, detail: string): Finding;
  /**
   * @param remedy what to do, as a clause.
   * @param failure if the step could not finish, so that nothing that builds on it is tried.
   */
  warning(step: StepName, detail: string, remedy: string, failure?: Failure): Finding;
  /** Only a warning if the pod starts without it. */
  failure(step: StepName, failure: Failure, detail: string, remedy: string): Finding;
}

/**
 * @param subject `credential shop`; undefined for the program as a whole.
 * @param isOptional the pod starts without it.
 */
export function about(subject: string | undefined, isOptional = false): About {
  const named = (step: StepName, detail: string) => {
    const { title } = STEPS[step];
    return { step, what: subject === undefined ? title : `${subject}: ${title}`, detail };
  };
  return {
    ok: (step, detail) => ({ ...named(step, detail), verdict: 'ok' }),
    warning: (step, detail, remedy, failure) => ({
      ...named(step, detail),
      verdict: 'warning',
      remedy,
      ...(failure === undefined ? {} : { failure }),
    }),
    failure: (step, failure, detail, remedy) => ({
      ...named(step, detail),
      verdict: isOptional ? 'warning' : 'failure',
      failure,
      remedy,
    }),
  };
}
