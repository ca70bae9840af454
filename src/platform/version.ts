import manifest from '../../package.json' with { type: 'json' };

/** What this build is. The bundler puts the revision in; sources run from a checkout have none. */
declare const __REVISION__: string | undefined;

export const VERSION: string = manifest.version;
export const REVISION: string = typeof __REVISION__ === 'string' ? __REVISION__ : 'unknown';
