// Acts as a browser: follows redirects with cookies until a URL that begins with `until`.

export async function visit(url, until) {
    const cookies = new Map();
    for (let hop = 0; hop < 10; hop++) {
        const cookie = [...cookies].map(pair => pair.join('=')).join('; ');
        const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
        for (const line of response.headers.getSetCookie()) {
            const [name, ...value] = line.split(';')[0].split('=');
            cookies.set(name, value.join('='));
        }
        const next = response.headers.get('location');
        if (next === null) throw new Error(`the login ended with ${response.status}`);
        url = new URL(next, url).href;
        if (url.startsWith(until)) return url;
    }
    throw new Error('the login has too many redirects');
}
