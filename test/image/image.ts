import { BASE_IMAGE, BUILD_IMAGE } from './local-images.ts';

/** The image under test; global-setup.ts builds it. */
export const IMAGE = 'localhost/token-sidecar:test';

export const BUILD_ARGUMENTS = {
  BUILD_IMAGE,
  BASE_IMAGE,
  VERSION: '1.2.3',
  REVISION: '0123456789ab',
  CREATED: '2026-01-01T00:00:00Z',
};
