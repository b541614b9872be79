//! The methods of the extension, one function each.

use serde_json::Value;
use turnbuckle_protocol::method::Method;
use turnbuckle_protocol::types::{
    PaginatedParams, Resource,
    skills::{
        EXTENSION, GetSkillParams, GetSkillResult, ListSkillsResult, ReadDirectoryParams,
        ReadDirectoryResult, SkillEntry,
    },
};

use super::{Skill, SkillError};
use crate::call::{Call, Options};
use crate::client::{Beside, Client};
use crate::error::CallError;
use crate::pages::Pages;

static LIST: Method = Method::of_extension("skills/list");
static GET: Method = Method::of_extension("skills/get");
static READ_DIRECTORY: Method = Method::of_extension("resources/directory/read");

impl Client {
    /// Lists the skills of the server, page by page. None of their files is read.
    pub fn skills(&self) -> Pages<SkillEntry> {
        self.pages(&LIST, |client, cursor| {
            let page = client.list_skills(cursor);
            async move { page.await.map(|page| (page.skills, page.next_cursor)) }
        })
    }

    /// Lists one page of skills.
    pub fn list_skills(&self, cursor: Option<String>) -> Call<ListSkillsResult> {
        let mut params = PaginatedParams::new();
        params.cursor = cursor;
        Call::new(self, async move |client: Client, options: Options| {
            client.offers_skills(&LIST)?;
            client.ask(&LIST, params, Beside::default(), &options).await
        })
    }

    /// Returns one skill as a list would show it, by the address of its `SKILL.md`.
    pub fn skill(&self, uri: impl Into<String>) -> Call<SkillEntry> {
        let params = GetSkillParams::new(uri);
        Call::new(self, async move |client: Client, options: Options| {
            client.offers_skills(&GET)?;
            let uri = params.uri.clone();
            let result: GetSkillResult = client
                .ask(&GET, params, Beside::default(), &options)
                .await?;
            match result.skill.uri == uri {
                true => Ok(result.skill),
                false => Err(CallError::InvalidAnswer {
                    method: GET.name,
                    reason: "it is another skill".to_owned(),
                }),
            }
        })
    }

    /// Reads the instructions of a skill, and checks that they are what was listed.
    ///
    /// Only its `SKILL.md` is read; if that fails the check, nothing else can be.
    pub async fn read_skill(&self, entry: &SkillEntry) -> Result<Skill, SkillError> {
        Skill::read(self.clone(), entry.clone()).await
    }

    /// Lists what is directly in a folder, page by page.
    pub fn directory(&self, uri: impl Into<String>) -> Pages<Resource> {
        let uri = uri.into();
        self.pages(&READ_DIRECTORY, move |client, cursor| {
            let page = client.read_directory(uri.clone(), cursor);
            async move { page.await.map(|page| (page.resources, page.next_cursor)) }
        })
    }

    /// Lists one page of what is directly in a folder.
    pub fn read_directory(
        &self,
        uri: impl Into<String>,
        cursor: Option<String>,
    ) -> Call<ReadDirectoryResult> {
        let mut params = ReadDirectoryParams::new(uri);
        params.cursor = cursor;
        Call::new(self, async move |client: Client, options: Options| {
            client.offers_directories()?;
            let beside = Beside::default();
            client.ask(&READ_DIRECTORY, params, beside, &options).await
        })
    }

    fn offers_skills(&self, method: &'static Method) -> Result<(), CallError> {
        match self.server().capabilities.has_extension(EXTENSION) {
            true => Ok(()),
            false => Err(CallError::NotOffered {
                method: method.name,
                capability: EXTENSION,
            }),
        }
    }

    fn offers_directories(&self) -> Result<(), CallError> {
        self.offers_skills(&READ_DIRECTORY)?;
        let server = self.server();
        let extensions = server.capabilities.extensions.as_ref();
        let settings = extensions.and_then(|extensions| extensions.get(EXTENSION));
        match settings.and_then(|settings| settings.get("directoryRead")) {
            Some(Value::Bool(true)) => Ok(()),
            _ => Err(CallError::NotOffered {
                method: READ_DIRECTORY.name,
                capability: "directoryRead",
            }),
        }
    }
}
