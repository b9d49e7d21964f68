import { useState } from "preact/hooks";
import { Seg } from "../../parts/forms";
import { request } from "./request";

type Language = "curl" | "Python" | "JavaScript";

/** The same job from a program. The blobs that it names are the tables above, which the service keeps for a day. */
export function Programs() {
  const [language, setLanguage] = useState<Language>("curl");
  return (
    <details>
      <summary>The same from a program</summary>
      <div class="gap8">
        <Seg
          name="language"
          legend="Language"
          tiny
          value={language}
          options={[
            ["curl", "curl"],
            ["Python", "Python"],
            ["JavaScript", "JavaScript"],
          ]}
          change={setLanguage}
        />
        <pre class="code" tabIndex={0} aria-label={`The job in ${language}`}>
          {code(language, JSON.stringify(request(), null, 1), location.origin)}
        </pre>
      </div>
    </details>
  );
}

export function code(language: Language, body: string, origin: string): string {
  if (language === "curl")
    return `curl ${origin}/v1/jobs \\\n  -H 'Authorization: Bearer '"$ALLOT_API_KEY" \\\n  -H 'Content-Type: application/json' \\\n  -H 'Prefer: wait=60' -d '${body.replaceAll("'", "'\\''")}'`;
  if (language === "Python")
    return `import json, os\nimport httpx\n\njob = json.loads(r'''${body}''')\nheaders = {"Prefer": "wait=60", "Authorization": "Bearer " + os.environ.get("ALLOT_API_KEY", "")}\nanswer = httpx.post("${origin}/v1/jobs", json=job, headers=headers, timeout=90)\nprint(answer.json()["objective"])`;
  return `const answer = await fetch("${origin}/v1/jobs", {\n  method: "POST",\n  headers: {"Content-Type": "application/json", Prefer: "wait=60", Authorization: "Bearer " + process.env.ALLOT_API_KEY},\n  body: JSON.stringify(${body}),\n});\nconsole.log((await answer.json()).objective);`;
}
