import type { InjectionDefaults } from '../../src/injector/injection-defaults.ts';

/** What an injector without settings gives a pod. */
export const DEFAULTS: InjectionDefaults = {
  image: 'ghcr.io/token-sidecar/token-sidecar:0.1.0',
  imagePullPolicy: 'IfNotPresent',
  realm: 'dx',
  allowInsecureTokenUrl: false,
  mode: 'reverse',
  logLevel: 'info',
  resources: { cpuRequest: '10m', memoryRequest: '48Mi', memoryLimit: '128Mi' },
  startupSeconds: 120,
  prometheusAnnotations: true,
};

/** A pod's annotations that say all there is to say. */
export const ASKING: Readonly<Record<string, string>> = {
  'token-sidecar.dev/inject': 'true',
  'token-sidecar.dev/secret': 'shop-oauth',
  'token-sidecar.dev/auth-url': 'https://sso.example.com',
  'token-sidecar.dev/upstream': 'https://api.example.com',
};
