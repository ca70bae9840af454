import { expect, it } from 'vitest';
import { provesAcceptance } from '../../src/token/bearer-source.ts';

it.each([101, 200, 204, 304, 399, 402, 403, 404, 409, 418, 422, 499])(
  'an answer with %i shows that the upstream accepted the token',
  (status) => {
    expect(provesAcceptance(status)).toBe(true);
  },
);

it.each([400, 401, 407, 408, 413, 414, 421, 425, 429, 431, 500, 503, 599])(
  'an answer with %i does not show that the upstream accepted the token',
  (status) => {
    expect(provesAcceptance(status)).toBe(false);
  },
);
