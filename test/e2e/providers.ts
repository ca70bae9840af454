/** The identity providers that are installed for these tests: which version, checked by which digest, kept where. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const CACHE = fileURLToPath(new URL('../../.cache/providers/', import.meta.url));

export interface InstalledProvider {
  readonly name: string;
  /** Exists once everything is installed and checked. */
  readonly directory: string;
}

const KEYCLOAK_VERSION = '26.7.3';

export const KEYCLOAK = {
  name: 'Keycloak',
  version: KEYCLOAK_VERSION,
  /** Coordinates on Maven Central. */
  artifact: `org.keycloak:keycloak-quarkus-dist:${KEYCLOAK_VERSION}:zip`,
  file: `keycloak-quarkus-dist-${KEYCLOAK_VERSION}.zip`,
  sha512:
    '15c764765576eef267cf15cc5225a5826b5394a25a83d9bfa5b8544e4bbba690cb743c9d384200b93bb71ee4c4a328e1dd8c0a00f822fd3e6e154f14b1e47216',
  directory: join(CACHE, `keycloak-${KEYCLOAK_VERSION}`),
} as const satisfies InstalledProvider & Record<string, string>;

/** Debian 12 (bookworm), amd64. */
export const GLEWLWYD = {
  name: 'Glewlwyd',
  package: 'glewlwyd=2.7.5-3+deb12u1',
  sha256: 'b74504fbd408453ba629ee5bb99975b4361ca161ead068304e5d5a66ceec3f6a',
  /** Those of its libraries that a plain system lacks, as new as Debian has them: apt checks its own signatures. */
  libraries: [
    'libcbor0.8',
    'libconfig9',
    'libhoel1.4',
    'libiddawc1.1',
    'libmariadb3',
    'libmicrohttpd12',
    'liboath0',
    'liborcania2.3',
    'libpq5',
    'librhonabwy1.1',
    'libulfius2.7',
    'libyder2.0',
  ],
  directory: join(CACHE, 'glewlwyd-2.7.5-3+deb12u1'),
} as const satisfies InstalledProvider & Record<string, string | readonly string[]>;

/** Ory Hydra, compiled from the module that `hydra/go.mod` names; its checksums are in `hydra/go.sum`. */
export const HYDRA = {
  name: 'Ory Hydra',
  directory: join(CACHE, 'hydra-2.3.0'),
  program: join(CACHE, 'hydra-2.3.0', 'hydra'),
} as const satisfies InstalledProvider & Record<string, string>;

/** As Spring Boot 4.1.2 has it: what `spring-authorization-server/pom.xml` names. */
export const SPRING = {
  name: 'Spring Authorization Server',
  directory: join(CACHE, 'spring-authorization-server-7.1.2'),
} as const satisfies InstalledProvider;

/** What `mock-oauth2-server/pom.xml` names. */
export const MOCK_OAUTH2_SERVER = {
  name: 'mock-oauth2-server',
  directory: join(CACHE, 'mock-oauth2-server-3.0.1'),
} as const satisfies InstalledProvider;

/** What `django-oauth-toolkit/requirements.txt` names. */
export const DJANGO = {
  name: 'Django OAuth Toolkit',
  directory: join(CACHE, 'django-oauth-toolkit-3.4.1'),
} as const satisfies InstalledProvider;

/** Why the provider cannot be used here, or undefined when it can. */
export function missing({ name, directory }: InstalledProvider): string | undefined {
  return existsSync(directory) ? undefined : `${name} is not installed; see test/e2e/install-providers.ts`;
}
